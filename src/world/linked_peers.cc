// SPDX-License-Identifier: Apache-2.0
#include "world/linked_peers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "core/log.h"

namespace memspan::inline world {
namespace {

// A launcher, or the watcher on the process's node, soon reports how it ended; a lost connection
// shows only that it did.
constexpr auto kPatienceWithWatch = std::chrono::milliseconds(500);
constexpr auto kPatienceWithNode = std::chrono::milliseconds(100);

}  // namespace

Result<std::unique_ptr<LinkedPeers>> LinkedPeers::make(const Membership& membership,
                                                       WaitContext& waiting, Messages& messages,
                                                       const Memory& memory, bool links_near) {
  std::unique_ptr<LinkedPeers> peers(new LinkedPeers(membership, waiting, messages));
  MEMSPAN_PASS(peers->introduce(memory));
  peers->connect(links_near);
  return peers;
}

LinkedPeers::LinkedPeers(const Membership& membership, WaitContext& waiting, Messages& messages)
    : membership_(membership),
      waiting_(waiting),
      messages_(messages),
      has_messages_(static_cast<std::size_t>(membership.size)),
      has_greeted_(static_cast<std::size_t>(membership.size)),
      has_repeated_(static_cast<std::size_t>(membership.size)),
      links_(static_cast<std::size_t>(membership.size)) {
  messages_.set_carriage(
      {std::bind_front(&LinkedPeers::send, this), [this] { transport_->engine().progress(); }});
  messages_.set_notice_handler(
      [this](int from, std::uint64_t id, std::uint64_t sequence, std::span<const std::byte> bytes) {
        if (const auto notice = Notice::decode(id, sequence, bytes)) take(from, *notice);
      });
}

// From here on no handler sends anything.
LinkedPeers::~LinkedPeers() {
  if (transport_ != nullptr) transport_->end_handlers();
}

Status LinkedPeers::start_transport() {
  MessageOptions options;
  MEMSPAN_TRY_ASSIGN(options.carrier, make_carrier(membership_.carrier),
                     "starting the transport \"message\"");
  options.self = membership_.rank;
  options.name = membership_.nodes.describe(membership_.rank);
  MEMSPAN_TRY_ASSIGN(options.faults, Faults::from_environment(), "reading the environment");
  options.silence_limit = membership_.carrier.silence_limit;
  options.handlers.on_message = [this](int peer, const MessageTag& tag, Buffer bytes) {
    if (const Status taken = messages_.deliver(peer, tag, std::move(bytes)); !taken.is_ok())
      log_line(LogLevel::kWarn,
               fmt::format("{} sent {}", membership_.nodes.describe(peer), taken.message()));
  };
  options.handlers.on_peer_lost = [this](int peer, const Status&) { handle_loss(peer); };
  // Called after puts and atomics of peers; messages ring by themselves.
  options.handlers.after_apply = [this] {
    // Pairs with the fence of a waiter that sets its sleeping flag and looks once more.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (waiting_.self->sleeps_for_data.load(std::memory_order_relaxed) != 0)
      NodeSegment::ring(*waiting_.self);
  };
  MEMSPAN_TRY_ASSIGN(transport_, MessageTransport::make(std::move(options)),
                     "starting the transport \"message\"");
  return Status::ok();
}

// Starts the transport and exposes this process's memory.
Result<std::string> LinkedPeers::introduction(const Memory& memory) {
  MEMSPAN_PASS(start_transport());
  MEMSPAN_TRY_ASSIGN(
      heap_,
      transport_->expose(
          {.base = memory.heap, .bytes = memory.heap_bytes, .number = kHeapRegion, .lasts = true}),
      "exposing the symmetric heap");
  Introduction mine{.process = getpid(),
                    .heap_bytes = memory.heap_bytes,
                    .commit_mode = memory.commit_mode,
                    .program = memory.data.identity,
                    .address = transport_->address(),
                    .heap = heap_->describe(),
                    .data = {}};
  if (!memory.data.is_empty()) {
    MEMSPAN_TRY_ASSIGN(
        data_,
        transport_->expose(
            {.base = memory.data.base, .bytes = memory.data.bytes, .number = kStaticRegion}),
        "exposing the variables");
    mine.data = data_->describe();
  }
  return mine.encode();
}

// A PE that cannot continue reports it to all, so that none waits for it.
Status LinkedPeers::introduce(const Memory& memory) {
  MEMSPAN_TRY_ASSIGN(const std::vector<std::string> texts,
                     agree(membership_.exchange, introduction(memory), "PE"),
                     "exchanging addresses");
  for (const std::string& text : texts) {
    MEMSPAN_TRY_ASSIGN(Introduction its, Introduction::decode(text), "exchanging addresses");
    const auto peer = static_cast<int>(introductions_.size());
    if (its.heap_bytes != memory.heap_bytes)
      return {Code::kInvalidArgument,
              fmt::format("this process asks for a symmetric heap of {} bytes, {} for {}; all must "
                          "ask for the same (SHMEM_SYMMETRIC_SIZE)",
                          memory.heap_bytes, membership_.nodes.describe(peer), its.heap_bytes)};
    if (its.commit_mode != memory.commit_mode)
      return {Code::kInvalidArgument,
              fmt::format("MEMSPAN_COMMIT is another one in this process than in {}; all must have "
                          "the same",
                          membership_.nodes.describe(peer))};
    introductions_.push_back(std::move(its));
  }
  return Status::ok();
}

// Also fills the slots of PEs of other nodes. All processes of the node write the same, and none
// overwrites what has happened since.
void LinkedPeers::connect(bool links_near) {
  const NodeMap& nodes = membership_.nodes;
  for (int peer = 0; peer < membership_.size; ++peer) {
    const bool is_near = nodes.share_node(peer, membership_.rank);
    if (peer == membership_.rank || (is_near && !links_near)) continue;
    links_[peer] = transport_->connect(
        {peer, nodes.describe(peer), std::exchange(introductions_[peer].address, {})});
    if (is_near) continue;
    PeerSlot& slot = membership_.segment->peer(peer);
    slot.pid.store(introductions_[peer].process, std::memory_order_relaxed);
    PeerState before = PeerState::kAbsent;
    slot.state.compare_exchange_strong(before, PeerState::kJoined, std::memory_order_acq_rel);
  }
  is_ready_.store(true, std::memory_order_release);
  call_later(Duration::zero(), [this] { keep_in_touch(); });
}

const RemoteRegion* LinkedPeers::data_of(int peer) const {
  const Introduction& its = introductions_[peer];
  const Introduction& mine = introductions_[membership_.rank];
  return its.data && its.program == mine.program ? &*its.data : nullptr;
}

Status LinkedPeers::send(int peer, const MessageTag& tag, std::span<const std::byte> bytes,
                         const Deadline& deadline) {
  has_messages_[peer].store(true, std::memory_order_relaxed);
  Link* const to = link(peer);
  if (to == nullptr)
    return {Code::kInternal, fmt::format("{} has no link", membership_.nodes.describe(peer))};
  return tag.kind == MessageKind::kNotice ? to->post(tag, bytes) : to->send(tag, bytes, deadline);
}

void LinkedPeers::flush(const Deadline& deadline) {
  OperationContext operations;
  for (int peer = 0; peer < membership_.size; ++peer) {
    if (!has_messages_[peer].exchange(false)) continue;
    operations.set_limit(deadline.remaining());
    // One that is gone needs no message any more.
    if (Link* const to = link(peer); to != nullptr)
      static_cast<void>(to->quiet(operations).is_ok());
  }
}

// Passes it on before writing it down: a process that sees it there may end this one.
void LinkedPeers::take(int from, const Notice& notice) {
  const NodeSegment& segment = *membership_.segment;
  // Ignores losses from a process that is marked dead but runs: it knows nothing of others.
  const bool is_loss = notice.kind == Notice::Kind::kLoss;
  if (is_loss && segment.peer(from).is_dead()) return;
  const bool is_loss_news = is_loss && is_news(notice, segment);
  const bool is_ready = is_ready_.load(std::memory_order_acquire);
  if (is_ready && notice.kind == Notice::Kind::kEnd) notice_routes().pass_on(notice);
  if (is_ready && is_news(notice, segment)) notice_routes().flood(notice);
  apply(notice, segment);
  // Without a launcher processes end each other: one that makes no call would not see it.
  if (notice.kind == Notice::Kind::kExit && !membership_.is_launched)
    call_later(kPatienceWithNode, [this] { follow_exit_request(*membership_.segment); });
  if (notice.kind == Notice::Kind::kRepeatEnds)
    ask_for_ends(notice.rank);
  else if (is_loss_news)
    repeat_ends();
  keep_in_touch();
}

// Sends the ends of all PEs of this node that have ended.
void LinkedPeers::repeat_ends() {
  if (!waiting_.has_ends()) return;
  for (const int peer : membership_.nodes.peers_of(membership_.node())) {
    const PeerSlot& slot = membership_.segment->peer(peer);
    const std::uint32_t ended = slot.ended.load(std::memory_order_acquire);
    if (ended < waiting_.generation) continue;
    const auto how = static_cast<std::int32_t>(slot.end_kind.load(std::memory_order_relaxed));
    tell({Notice::Kind::kEnd, peer, how, ended});
  }
}

// `dead` had ended, so no PE misses it, but ends that it had to pass on may be lost.
void LinkedPeers::ask_for_ends(int dead) {
  if (dead >= membership_.size || has_repeated_[dead]) return;
  has_repeated_[dead] = true;
  tell({Notice::Kind::kRepeatEnds, dead});
  repeat_ends();
}

// A connection ended without a goodbye. Processes that know more have some time to report it.
void LinkedPeers::handle_loss(int peer) {
  const bool is_dead = membership_.segment->peer(peer).is_dead();
  if (!is_dead && waiting_.is_gone(peer))
    return call_later(Duration::zero(), [this, peer] { ask_for_ends(peer); });
  if (is_dead) return;
  // Without a launcher the lowest PE of a node watches the others there, and they watch it.
  const auto& nearby = membership_.nodes.peers_of(membership_.nodes.node_of(peer));
  const bool is_watched =
      membership_.is_launched || std::any_of(nearby.begin(), nearby.end(), [&](int other) {
        return other != peer && !waiting_.is_gone(other);
      });
  call_later(is_watched ? kPatienceWithWatch : Duration::zero(), [this, peer] { note_loss(peer); });
}

void LinkedPeers::note_loss(int peer) {
  if (waiting_.is_gone(peer)) return;
  if (membership_.segment->mark_lost(peer, kConnectionLost)) {
    tell({Notice::Kind::kLoss, peer, kConnectionLost});
    if (is_ready_.load(std::memory_order_acquire))
      notice_routes().repeat_losses(membership_.nodes.node_of(peer));
    repeat_ends();
  }
  keep_in_touch();
}

// Needed if no launcher sees deaths on all nodes, or if a node may fall silent, which no launcher
// sees in time. The lowest living PE of a node keeps connections to those of its neighbors. When
// one breaks, that peer is lost, and the next one takes its place.
void LinkedPeers::keep_in_touch() {
  if (membership_.is_launched && membership_.carrier.silence_limit == Duration::max()) return;
  if (!is_ready_.load(std::memory_order_acquire)) return;
  for (const int peer : membership_.nodes.peers_of(membership_.node())) {
    if (peer == membership_.rank) break;
    if (!waiting_.is_gone(peer)) return;
  }
  for (const int peer : notice_routes().watched()) {
    if (has_greeted_[peer]) continue;
    has_greeted_[peer] = true;
    const Notice greeting{Notice::Kind::kGreeting, membership_.rank};
    if (!messages_.send(peer, greeting.key(), greeting.bytes()).is_ok()) handle_loss(peer);
  }
}

}  // namespace memspan::inline world
