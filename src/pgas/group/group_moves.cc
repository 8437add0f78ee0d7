// SPDX-License-Identifier: Apache-2.0
// The collectives that move bytes as they are. A member that has data writes a piece to its
// pipeline buffer, once if it is for all, otherwise into a slot for each member. The members that
// want the data read it there.
#include <fmt/format.h>

#include <numeric>

#include "pgas/group/call.h"

namespace memspan::inline pgas {
namespace {

// At the beginning of the buffer of the first piece a member says how many bytes it has for each
// member, and then how many it wants from each.
std::size_t bytes_of_sizes(const ProcessGroup& group) {
  return align_up(sizeof(std::uint64_t) * 2 * static_cast<std::size_t>(group.size()), kCacheLine);
}
const std::uint64_t* sizes_of(const ProcessGroup& group, int member) {
  return reinterpret_cast<const std::uint64_t*>(group.buffer_of(member));
}

// The most bytes that a member has for another one. All look at all pairs, so that all know.
Result<std::size_t> agree_on_sizes(const ProcessGroup& group) {
  std::uint64_t most = 0;
  for (int from = 0; from < group.size(); ++from)
    for (int to = 0; to < group.size(); ++to) {
      const std::uint64_t has = sizes_of(group, from)[to];
      const std::uint64_t wants = sizes_of(group, to)[group.size() + from];
      if (has != wants)
        return Status(Code::kInvalidArgument,
                      fmt::format("member {} has {} bytes for member {}, which wants {}", from, has,
                                  to, wants));
      if (from != to) most = std::max(most, has);
    }
  return most;
}

// The values of all members, for the root, or without one for all.
Status gather(ProcessGroup& group, const CallSignature& signature, void* const results[],
              const void* values) {
  const bool is_for_all = signature.root < 0;
  const bool is_reader = is_for_all || group.rank() == signature.root;
  ResultWriter write(signature.bytes * static_cast<std::size_t>(group.size()));
  return in_pieces(
      group, signature, kPipelineBytes,
      [&](const Piece& piece) {
        if (is_for_all)
          group.give_all(0, at(values, piece.begin), piece.bytes);
        else if (!is_reader)
          group.give_buffer(signature.root, at(values, piece.begin), piece.bytes);
      },
      [&](const Piece& piece) {
        if (!is_reader) return;
        write(at(results[group.rank()], piece.begin), at(values, piece.begin), piece.bytes);
        for (int i = 1; i < group.size(); ++i)
          write(at(results[other(group, i)], piece.begin), group.buffer_of(other(group, i)),
                piece.bytes);
      });
}

}  // namespace

// In line, because it takes under 100 ns.
[[gnu::flatten]] Status group_barrier(ProcessGroup& group) {
  if (group.is_idle(kNoBuffer)) [[unlikely]]
    MEMSPAN_PASS(group.give_back("barrier", kNoBuffer));
  return checked_barrier(group, {GroupCall::kBarrier});
}

Status group_broadcast(ProcessGroup& group, void* values, std::size_t bytes, int root) {
  MEMSPAN_PASS(check_member(group, "root", root));
  const CallSignature signature{GroupCall::kBroadcast, bytes, root};
  const bool is_root = group.rank() == root;
  if (bytes <= kCallDataBytes) {
    MEMSPAN_PASS(broadcast_barrier(group, signature, values, is_root ? bytes : 0));
    if (!is_root) read_call_data(group, root, values, bytes);
    return Status::ok();
  }
  if (Team& team = group.team(); team.nodes() == nullptr && bytes <= team.eager_bytes()) {
    if (is_root) {
      MEMSPAN_PASS(team.make_room(signature.what()));
      std::memcpy(team.my_eager_buffer(), values, bytes);
    }
    MEMSPAN_PASS(broadcast_barrier(group, signature));
    if (!is_root) std::memcpy(values, team.eager_buffer(root), bytes);
    return Status::ok();
  }
  ResultWriter write(bytes);
  return in_pieces(
      group, signature, kPipelineBytes,
      [&](const Piece& piece) {
        if (is_root) group.give_all(0, at(values, piece.begin), piece.bytes);
      },
      [&](const Piece& piece) {
        if (!is_root) write(at(values, piece.begin), group.buffer_of(root), piece.bytes);
      });
}

Status group_all_gather(ProcessGroup& group, void* const results[], const void* values,
                        std::size_t bytes) {
  return gather(group, {GroupCall::kAllGather, bytes}, results, values);
}

Status group_gather(ProcessGroup& group, void* const results[], const void* values,
                    std::size_t bytes, int root) {
  MEMSPAN_PASS(check_member(group, "root", root));
  return gather(group, {GroupCall::kGather, bytes, root}, results, values);
}

Status group_scatter(ProcessGroup& group, void* result, const void* const values[],
                     std::size_t bytes, int root) {
  MEMSPAN_PASS(check_member(group, "root", root));
  const bool is_root = group.rank() == root;
  const Slots slots = cut_buffer(group, 0);
  ResultWriter write(bytes);
  return in_pieces(
      group, {GroupCall::kScatter, bytes, root}, slots.bytes,
      [&](const Piece& piece) {
        if (is_root) give_pieces(group, slots, values, [&](int) { return piece; });
      },
      [&](const Piece& piece) {
        write(at(result, piece.begin),
              is_root ? at(values[root], piece.begin) : group.given(slots, root), piece.bytes);
      });
}

Status group_all_to_all(ProcessGroup& group, void* const results[],
                        const std::size_t result_bytes[], const void* const values[],
                        const std::size_t value_bytes[]) {
  const CallSignature signature{GroupCall::kAllToAll};
  const Slots slots = cut_buffer(group, bytes_of_sizes(group));
  ResultWriter write(std::accumulate(result_bytes, result_bytes + group.size(), std::size_t{0}));
  const auto fill = [&](std::size_t step) {
    if (step == 0) {
      auto* const sizes = reinterpret_cast<std::uint64_t*>(group.my_buffer());
      std::copy_n(result_bytes, group.size(), std::copy_n(value_bytes, group.size(), sizes));
      group.share(0, group.my_buffer(), bytes_of_sizes(group));
    }
    give_pieces(group, slots, values,
                [&](int member) { return piece_of(value_bytes[member], slots.bytes, step); });
  };
  const auto consume = [&](std::size_t step) {
    for (int i = 1; i < group.size(); ++i) {
      const int member = other(group, i);
      const Piece piece = piece_of(result_bytes[member], slots.bytes, step);
      write(at(results[member], piece.begin), group.given(slots, member), piece.bytes);
    }
  };
  const auto agree = [&]() -> Result<std::size_t> {
    MEMSPAN_PASS_ASSIGN(const std::size_t most, agree_on_sizes(group));
    return pieces_of(most, slots.bytes);
  };
  const std::size_t bytes =
      std::accumulate(value_bytes, value_bytes + group.size(), std::size_t{0});
  // Other members may write more than this one.
  constexpr BufferUse kAll{kPipelineBytes, kPipelineBytes};
  MEMSPAN_PASS(in_agreed_steps(group, signature, bytes, kAll, fill, agree, consume));
  const int rank = group.rank();
  write(results[rank], values[rank], value_bytes[rank]);
  return Status::ok();
}

}  // namespace memspan::inline pgas
