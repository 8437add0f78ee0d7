// SPDX-License-Identifier: Apache-2.0
#include "world/notices.h"

#include <cstring>

namespace memspan {
namespace {

struct Payload {
  std::int32_t value;
  std::uint32_t generation;
};

void note_end(const Notice& notice, const NodeSegment& segment) {
  PeerSlot& slot = segment.peer(notice.rank);
  slot.end_kind.store(static_cast<EndKind>(notice.value), std::memory_order_relaxed);
  // As World::end() does for its own slot.
  slot.ended.store(notice.generation, std::memory_order_seq_cst);
  segment.header().ending.store(notice.generation, std::memory_order_release);
  segment.ring_all();
}

}  // namespace

MessageKey Notice::key() const {
  return {MessageKind::kNotice, static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(rank)};
}

std::vector<std::byte> Notice::bytes() const {
  const Payload payload{value, generation};
  std::vector<std::byte> bytes(sizeof payload);
  std::memcpy(bytes.data(), &payload, sizeof payload);
  return bytes;
}

std::optional<Notice> Notice::decode(std::uint64_t id, std::uint64_t sequence,
                                     std::span<const std::byte> bytes) {
  Payload payload{};
  const auto kind = static_cast<Kind>(id);
  if (kind < Kind::kLoss || kind > Kind::kGreeting || sequence >= kMostPeers ||
      bytes.size() != sizeof payload)
    return std::nullopt;
  std::memcpy(&payload, bytes.data(), sizeof payload);
  return Notice{kind, static_cast<int>(sequence), payload.value, payload.generation};
}

void apply(const Notice& notice, const NodeSegment& segment) {
  if (notice.rank >= segment.peers()) return;
  switch (notice.kind) {
    case Notice::Kind::kLoss:
      segment.mark_lost(notice.rank, notice.value);
      break;
    case Notice::Kind::kDeparture:
      segment.mark_departed(notice.rank);
      break;
    case Notice::Kind::kEnd:
      note_end(notice, segment);
      break;
    case Notice::Kind::kExit:
      segment.request_exit(notice.rank, notice.value);
      break;
    case Notice::Kind::kGreeting:
      break;
  }
}

void tell_other_nodes(const Notice& notice, int self, const NodeMap& nodes,
                      const WaitContext& waiting, Messages& messages) {
  const std::vector<std::byte> bytes = notice.bytes();
  for (int node = 0; node < nodes.count(); ++node) {
    if (node == nodes.node_of(self)) continue;
    for (int index = 0; index < nodes.peers_in(node); ++index) {
      const int peer = nodes.peer_of(node, index);
      // One that has begun to leave still passes things on, until all have.
      if (waiting.segment->peer(peer).death.load(std::memory_order_acquire) != 0) continue;
      if (messages.send(peer, notice.key(), bytes).is_ok()) break;
    }
  }
}

}  // namespace memspan
