// SPDX-License-Identifier: Apache-2.0
#include "world/notices.h"

#include "store/fields.h"

namespace memspan::inline world {

std::vector<std::byte> Notice::bytes() const {
  FieldWriter out;
  out(value, generation, span);
  const std::string text = out.take();
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}

std::optional<Notice> Notice::decode(std::uint64_t id, std::uint64_t sequence,
                                     std::span<const std::byte> bytes) {
  const auto kind = static_cast<Kind>(id);
  if (kind < Kind::kLoss || kind > Kind::kRepeatEnds || sequence >= kMostPeers) return std::nullopt;
  Notice read{kind, static_cast<int>(sequence)};
  FieldReader in({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  in(read.value, read.generation, read.span);
  if (!in.is_finished() || read.span < 0 || read.span >= kMostPeers) return std::nullopt;
  return read;
}

void apply(const Notice& notice, const NodeSegment& segment) {
  using Kind = Notice::Kind;
  if (notice.rank >= segment.peers()) return;
  if (notice.kind == Kind::kLoss) segment.mark_lost(notice.rank, notice.value);
  if (notice.kind == Kind::kDeparture) segment.mark_departed(notice.rank);
  if (notice.kind == Kind::kExit) segment.request_exit(notice.rank, notice.value);
  if (notice.kind != Kind::kEnd) return;
  // As World::end() does for its own slot.
  PeerSlot& slot = segment.peer(notice.rank);
  slot.end_kind.store(static_cast<EndKind>(notice.value), std::memory_order_relaxed);
  slot.ended.store(notice.generation, std::memory_order_seq_cst);
  segment.header().ending.store(notice.generation, std::memory_order_release);
  segment.ring_all();
}

bool is_news(const Notice& notice, const NodeSegment& segment) {
  using Kind = Notice::Kind;
  if (notice.rank >= segment.peers()) return false;
  if (notice.kind == Kind::kExit)
    return segment.header().exit_requested.load(std::memory_order_acquire) == 0;
  if (notice.kind != Kind::kLoss && notice.kind != Kind::kDeparture) return false;
  const PeerState state = segment.peer(notice.rank).state.load(std::memory_order_acquire);
  return state != PeerState::kLost && state != PeerState::kLeft;
}

std::vector<Notice> losses(const NodeSegment& segment) {
  std::map<std::uint32_t, Notice> by_death;
  for (int rank = 0; rank < segment.peers(); ++rank) {
    const PeerSlot& peer = segment.peer(rank);
    const std::uint32_t death = peer.death.load(std::memory_order_acquire);
    if (death == 0) continue;
    const PeerState state = peer.state.load(std::memory_order_acquire);
    if (state == PeerState::kLeft)
      by_death[death] = {Notice::Kind::kDeparture, rank};
    else if (state == PeerState::kLost)
      by_death[death] = {Notice::Kind::kLoss, rank, peer.wait_status.load()};
  }
  std::vector<Notice> in_order;
  in_order.reserve(by_death.size());
  for (const auto& [death, notice] : by_death) in_order.push_back(notice);
  return in_order;
}

// Whether `rank` is dead and does not get the notice.
static bool is_of_death(const Notice& notice) {
  return notice.kind == Notice::Kind::kLoss || notice.kind == Notice::Kind::kRepeatEnds;
}

int NoticeRoutes::first_living(int node, int besides) const {
  for (const int peer : nodes_.peers_of(node))
    if (peer != besides && !waiting_.segment->peer(peer).is_dead()) return peer;
  return -1;
}

std::vector<int> NoticeRoutes::watched() const {
  std::vector<int> peers;
  for (const int node : overlay().neighbors())
    if (const int peer = first_living(node); peer >= 0) peers.push_back(peer);
  return peers;
}

// Sends to the first PE that lives and can be reached.
bool NoticeRoutes::send(int node, const Notice& notice) const {
  for (const int peer : nodes_.peers_of(node)) {
    if (is_of_death(notice) && peer == notice.rank) continue;
    if (waiting_.segment->peer(peer).is_dead()) continue;
    if (messages_.send(peer, notice.key(), notice.bytes()).is_ok()) return true;
  }
  return false;
}

void NoticeRoutes::flood(const Notice& notice) const {
  const int besides = is_of_death(notice) ? notice.rank : -1;
  for (const int node : overlay(besides).neighbors()) static_cast<void>(send(node, notice));
}

void NoticeRoutes::pass_on(const Notice& notice) const {
  overlay().pass_on(std::min(notice.span, nodes_.count() - 1), [&](int node, int span) {
    Notice its = notice;
    its.span = span;
    return send(node, its);
  });
}

void NoticeRoutes::tell(Notice notice) const {
  if (notice.kind != Notice::Kind::kEnd) return flood(notice);
  notice.span = nodes_.count() - 1;
  pass_on(notice);
}

}  // namespace memspan::inline world
