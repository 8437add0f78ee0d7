// SPDX-License-Identifier: Apache-2.0
// The barrier of a team on several nodes: the members of a node enter in shared memory, the nodes'
// first members exchange what was gathered there, write it to their areas and release their nodes.
// Afterwards words and eager buffers of all members can be read as on one node.
#include <fmt/format.h>

#include "device/host/copy.h"
#include "pgas/team.h"

namespace memspan {
namespace {

// The head of a line in a block: its words and how much of the eager buffer follows. Members in a
// row with the same words and no buffer share one, so a barrier without words is one for each node.
struct LineHead {
  std::uint64_t words[kPayloadWords];
  std::uint32_t eager_bytes;
  std::uint32_t members;
};

}  // namespace

Status Team::barrier_among_nodes(const char* what, std::uint64_t sequence) {
  if (!is_node_leader()) return follow_leader(what, sequence);
  Status status = lead(what, sequence);
  if (status.is_ok()) return Status::ok();
  // Members with a deadline, and members that learn of an exit, find out by themselves.
  if (status.code() != Code::kTimeout && status.code() != Code::kUnavailable) {
    int lost = missing_from_flags(sequence);
    for (int member = 0; lost < 0 && member < size(); ++member)
      if (!is_alive(member)) lost = peer_of(member);
    lost = first_lost(lost);
    area_.header().failure.store(std::uint64_t{1} << 63 |
                                     static_cast<std::uint64_t>(status.code()) << 32 |
                                     static_cast<std::uint32_t>(lost + 1),
                                 std::memory_order_release);
    LeaderExchange::tell_failure({*this, sequence, what}, status.code(), lost);
  }
  world().segment().ring_all();
  return status;
}

Status Team::follow_leader(const char* what, std::uint64_t sequence) {
  const int leader = peer_of(node_leader());
  world().route(leader).notify_sync();
  const SyncHeader& header = area_.header();
  const auto is_over = [&] { return header.released.load(std::memory_order_acquire) >= sequence; };
  MEMSPAN_PASS(wait_for(
      world().waiting(), WaitsFor::kSync, what, Deadline::never(),
      [&] { return is_over() || header.failure.load(std::memory_order_acquire) != 0; },
      Needs{[&] {
              int missing = missing_from_flags(sequence);
              if (missing < 0 && world().waiting().is_gone(leader)) missing = leader;
              return first_lost(missing);
            },
            // The leader, once all of the node have come: it waits for other nodes.
            [&] {
              for (const int member : nodes()->near())
                if (!has_entered(member, sequence)) return peer_of(member);
              return leader;
            }}));
  if (is_over()) return Status::ok();
  const std::uint64_t failure = header.failure.load(std::memory_order_acquire);
  const int peer = static_cast<int>(failure & 0xffff'ffff) - 1;
  if (peer >= 0) return lost_peer(world().waiting(), peer);
  return {static_cast<Code>(failure >> 32 & 0x7fff'ffff),
          fmt::format("it failed on PE {}, the first of this node's members", leader)};
}

Status Team::lead(const char* what, std::uint64_t sequence) {
  for (const int member : nodes()->near())
    MEMSPAN_PASS(await_flag(what, member, sequence, [&] {
      int missing = missing_from_flags(sequence);
      // A member of another node that is gone may have entered, but then the others of its node
      // have not got past this barrier: it fails for all.
      for (int other = 0; missing < 0 && other < size(); ++other)
        if (world().waiting().is_gone(peer_of(other)) && !is_near(other)) missing = peer_of(other);
      return first_lost(missing);
    }));
  MEMSPAN_PASS(LeaderExchange::run({*this, sequence, what}, lines_of_node(sequence),
                                   [&](int node, std::span<const std::byte> block) {
                                     return take_lines(node, block, sequence);
                                   }));
  release(sequence);
  return Status::ok();
}

// Depends on the member's signature: a broadcast's members read only the root's buffer. Elements
// that fit the words are in no buffer, but count all the same.
std::size_t Team::eager_bytes_used(int member, std::uint64_t sequence) const {
  const std::uint64_t signature =
      area_.line(member, sequence).words[kSignatureWord].load(std::memory_order_relaxed);
  const auto [kind, bytes, root] = CollectiveSignature::decode(signature);
  if (!CollectiveSignature::is_of_barrier(signature, sequence) || bytes > eager_bytes()) return 0;
  const bool is_read = kind == CollectiveKind::kBroadcast ? root == member
                                                          : kind != CollectiveKind::kAlltoall &&
                                                                kind != CollectiveKind::kAlltoalls;
  return is_read ? bytes : 0;
}

LeaderExchange::Block Team::lines_of_node(std::uint64_t sequence) const {
  LeaderExchange::Block block;
  LineHead last{};
  std::size_t at_last = 0;
  for (const int member : nodes()->near()) {
    const SyncLine& line = area_.line(member, sequence);
    LineHead head{.words = {}, .eager_bytes = 0, .members = 1};
    for (int i = 0; i < kPayloadWords; ++i)
      head.words[i] = line.words[i].load(std::memory_order_relaxed);
    head.eager_bytes = static_cast<std::uint32_t>(eager_bytes_used(member, sequence));
    if (last.members != 0 && last.eager_bytes == 0 && head.eager_bytes == 0 &&
        std::memcmp(last.words, head.words, sizeof head.words) == 0) {
      ++last.members;
      std::memcpy(block.data() + at_last, &last, sizeof last);
      continue;
    }
    at_last = block.size();
    last = head;
    LeaderExchange::append(block, head);
    const std::byte* const eager = area_.eager_buffer(member, sequence);
    block.insert(block.end(), eager, eager + head.eager_bytes);
  }
  return block;
}

Status Team::take_lines(int node, std::span<const std::byte> block, std::uint64_t sequence) {
  const auto malformed = [] { return Status(Code::kInternal, "a malformed block of a barrier"); };
  LineHead head{};
  for (const int member : nodes()->members(node)) {
    if (head.members == 0) {
      if (!LeaderExchange::read(block, head) || head.members == 0 ||
          head.eager_bytes > std::min(block.size(), eager_bytes()) ||
          (head.eager_bytes != 0 && head.members != 1))
        return malformed();
    }
    --head.members;
    SyncLine& line = area_.line(member, sequence);
    for (int i = 0; i < kPayloadWords; ++i)
      line.words[i].store(head.words[i], std::memory_order_relaxed);
    if (head.eager_bytes != 0)
      std::memcpy(area_.eager_buffer(member, sequence), block.data(), head.eager_bytes);
    block = block.subspan(head.eager_bytes);
    line.sequence.store(sequence, std::memory_order_release);
  }
  return head.members == 0 && block.empty() ? Status::ok() : malformed();
}

}  // namespace memspan
