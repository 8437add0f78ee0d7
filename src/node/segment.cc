// SPDX-License-Identifier: Apache-2.0
#include "node/segment.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <iterator>

#include "core/random.h"
#include "core/siphash.h"
#include "node/event_count.h"

namespace memspan::inline node {
namespace {

constexpr std::uint64_t kMagic = 0x64726f6270736d6d;
constexpr std::uint32_t kVersion = 8;

Status not_a_segment(const char* why) {
  return {Code::kInvalidArgument,
          fmt::format("the descriptor is not a node segment of this memspan: {}", why)};
}

// A keyed hash, and the secret is too long to be guessed from it.
std::string name_of_job(const NodeHeader& header) {
  constexpr SipKey kAnyKey{.low = 1, .high = 2};
  return fmt::format("job-{:016x}", siphash(kAnyKey, std::as_bytes(std::span(header.secret))));
}

}  // namespace

Result<NodeSegment> NodeSegment::create(int peers, std::uint64_t heap_stride, bool oversubscribed) {
  if (peers < 1 || peers > kMostPeers)
    return Status(
        Code::kInvalidArgument,
        fmt::format("a host can run 1 to {} processes of a job, not {}", kMostPeers, peers));
  std::size_t bytes = kPeersAt + static_cast<std::size_t>(peers) * sizeof(PeerSlot);
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::create(bytes, "memspan-node"), "making the node segment");
  MEMSPAN_TRY_ASSIGN(Reservation where, Reservation::of(pages), "making the node segment");
  NodeSegment segment(std::move(pages), std::move(where));
  NodeHeader& header = segment.header();
  header.magic = kMagic;
  header.version = kVersion;
  header.peers = static_cast<std::uint32_t>(peers);
  header.heap_stride = heap_stride;
  header.oversubscribed.store(oversubscribed ? 1 : 0, std::memory_order_relaxed);
  std::memcpy(header.secret, random_hex(32).data(), sizeof header.secret);
  return segment;
}

Result<NodeSegment> NodeSegment::attach(Fd descriptor) {
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::adopt(std::move(descriptor)),
                     "attaching to the node segment");
  if (pages.bytes() < kPeersAt) return not_a_segment("it is too small");
  MEMSPAN_TRY_ASSIGN(Reservation where, Reservation::of(pages), "attaching to the node segment");
  NodeSegment segment(std::move(pages), std::move(where));
  const NodeHeader& header = segment.header();
  if (header.magic != kMagic) return not_a_segment("the magic number is wrong");
  if (header.version != kVersion) return not_a_segment("it has another version");
  if (header.peers < 1 || header.peers > kMostPeers ||
      kPeersAt + header.peers * sizeof(PeerSlot) > segment.pages_.bytes())
    return not_a_segment("its number of peers does not fit its size");
  return segment;
}

SegmentSeen NodeSegment::look(const void* mapped, std::size_t bytes) {
  SegmentSeen seen;
  const auto* const base = static_cast<const std::byte*>(mapped);
  if (bytes < kPeersAt) return seen;
  const auto& header = *reinterpret_cast<const NodeHeader*>(base);
  const std::uint32_t peers = header.peers;
  if (header.magic != kMagic || header.version != kVersion || peers > kMostPeers ||
      kPeersAt + peers * sizeof(PeerSlot) > bytes)
    return seen;
  seen.job = name_of_job(header);
  const auto* const slots = reinterpret_cast<const PeerSlot*>(base + kPeersAt);
  for (std::uint32_t rank = 0; rank < peers; ++rank)
    seen.peers.push_back(
        {slots[rank].state.load(std::memory_order_acquire), slots[rank].pid.load()});
  return seen;
}

std::string NodeSegment::job_name() const {
  return name_of_job(header());
}

void NodeSegment::add_cores(const CoreSet& cores) const {
  for (std::size_t word = 0; word < std::size(header().cores); ++word) {
    std::uint64_t bits = 0;
    for (std::size_t bit = 0; bit < 64; ++bit)
      bits |= static_cast<std::uint64_t>(cores[word * 64 + bit]) << bit;
    if (bits != 0) header().cores[word].fetch_or(bits, std::memory_order_release);
  }
}

void NodeSegment::decide_oversubscription(int processes) const {
  int cores = 0;
  // Pairs with add_cores(). No process adds cores any more, so all decide the same.
  for (const std::atomic<std::uint64_t>& word : header().cores)
    cores += std::popcount(word.load(std::memory_order_acquire));
  header().oversubscribed.store(processes > cores ? 1 : 0, std::memory_order_release);
}

// Keeps the first cause that is known when two processes notice a death at the same time.
static void note_cause(PeerSlot& peer, std::int32_t cause) {
  std::int32_t before = peer.wait_status.load(std::memory_order_relaxed);
  while ((before == 0 || before == kUnseenEnd) &&
         !peer.wait_status.compare_exchange_weak(before, cause, std::memory_order_relaxed)) {
  }
}

bool NodeSegment::mark_lost(int rank, int wait_status) const {
  PeerSlot& lost = peer(rank);
  PeerState state = lost.state.load(std::memory_order_acquire);
  if (state == PeerState::kLeft || state == PeerState::kLost) return false;
  note_cause(lost, wait_status);
  // Pairs with the acquire loads of threads that saw `alarms` grow.
  if (!lost.state.compare_exchange_strong(state, PeerState::kLost, std::memory_order_acq_rel))
    return false;
  announce_loss(lost);
  return true;
}

void NodeSegment::mark_departed(int rank) const {
  PeerSlot& departed = peer(rank);
  // The notice may come before its arrival is noted.
  for (PeerState before : {PeerState::kAbsent, PeerState::kJoined}) {
    if (departed.state.load(std::memory_order_acquire) != before) continue;
    note_cause(departed, kDeparted);
    if (departed.state.compare_exchange_strong(before, PeerState::kLeft, std::memory_order_acq_rel))
      return announce_loss(departed);
  }
}

void NodeSegment::announce_loss(PeerSlot& lost) const {
  lost.death.store(header().deaths.fetch_add(1) + 1, std::memory_order_release);
  header().alarms.fetch_add(1, std::memory_order_release);
  ring_all();
}

void NodeSegment::request_exit(int rank, int code) const {
  std::uint32_t none = 0;
  if (!header().exit_requested.compare_exchange_strong(none, 1)) return;
  header().exit_code.store(code, std::memory_order_relaxed);
  header().exit_rank.store(rank, std::memory_order_relaxed);
  header().exit_requested.store(2, std::memory_order_release);  // pairs with the acquire in readers
  header().alarms.fetch_add(1, std::memory_order_release);
  ring_all();
}

void NodeSegment::ring(PeerSlot& peer) {
  // The flags are cleared before the ring: a peer that sets them in between saw our store.
  peer.sleeps_for_data.store(0, std::memory_order_relaxed);
  peer.sleeps.store(0, std::memory_order_relaxed);
  peer.doorbell.fetch_add(1, std::memory_order_release);
  futex_wake_all(peer.doorbell);
}

void NodeSegment::ring_all() const {
  // Pairs with the release in SlowPath::set_sleeping_flags(): earlier sleepers are rung below.
  header().anybody_sleeps.exchange(0, std::memory_order_acq_rel);
  // Pairs with fence_all_writers(), which does not reach the launcher.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int rank = 0; rank < peers(); ++rank)
    if (peer(rank).sleeps.load(std::memory_order_relaxed) != 0) ring(peer(rank));
}

}  // namespace memspan::inline node
