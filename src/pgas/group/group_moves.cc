// SPDX-License-Identifier: Apache-2.0
// The collectives that move bytes as they are. A member that has data writes a piece to its
// pipeline buffer, once if it is for all, otherwise into a slot for each member. The members that
// want the data read it there, or in its owner's memory.
#include <fmt/format.h>

#include <numeric>

#include "pgas/group/call.h"

namespace memspan::inline pgas {
namespace {

// The values of all members, for the root, or without one for all.
Status gather(ProcessGroup& group, const CallSignature& signature, void* const results[],
              const void* values) {
  const bool is_for_all = signature.root < 0;
  const bool is_reader = is_for_all || group.rank() == signature.root;
  const auto in_buffers = [&] {
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
  };
  return move_values(
      group, signature, [&](int) { return values; },
      [&](int member) { return is_reader ? results[member] : nullptr; }, in_buffers);
}

// At the beginning of the buffer of the first piece a member says how many bytes it has for each
// member, then how many it wants from each, and then the addresses of what it has, if that is read
// directly. Each member decides that by its own sizes.
struct AllToAll {
  // Other members may write more than this one.
  static constexpr BufferUse kAll{kPipelineBytes, kPipelineBytes};
  ProcessGroup& group;
  void* const* results;
  const std::size_t* result_bytes;
  const void* const* values;
  const std::size_t* value_bytes;
  bool may_be_direct = true;
  const CallSignature signature{GroupCall::kAllToAll};
  const std::size_t members = static_cast<std::size_t>(group.size());
  const std::size_t sizes_bytes = sizeof(std::uint64_t) * 2 * members;
  const Slots slots =
      cut_buffer(group, align_up(sizes_bytes + sizeof(std::uint64_t) * members, kCacheLine));
  const std::size_t all_bytes = std::accumulate(value_bytes, value_bytes + members, std::size_t{0});
  ResultWriter write{std::accumulate(result_bytes, result_bytes + members, std::size_t{0})};
  DirectPlan plan{};
  bool has_overlap = false;                // results of some member replace its values
  std::vector<std::uint64_t> addresses{};  // if the values of any are read directly
  std::size_t most_directly = 0;

  const void* from(int member) const { return values[member]; }
  void* to(int member) const { return results[member]; }
  std::size_t from_bytes(int member) const { return value_bytes[member]; }
  std::size_t to_bytes(int member) const { return result_bytes[member]; }

  Status run() {
    DirectReads& reads = group.direct_reads();
    const auto kind = static_cast<std::size_t>(signature.call);
    if (may_be_direct) plan = reads.plan(kind, all_bytes / members);
    MEMSPAN_PASS(in_agreed_steps(
        group, signature, plan.is_direct ? 0 : all_bytes, kAll,
        [&](std::size_t step) { fill(step); }, [&] { return enter(); },
        [&] { return agree_on_steps(); }, [&](std::size_t step) { consume(step); }));
    // Direct reads last until the end of the call, so nothing may replace the values.
    if (is_mixed()) return in_buffers();
    const int rank = group.rank();
    write(results[rank], values[rank], value_bytes[rank]);
    if (!addresses.empty()) {
      MEMSPAN_PASS_ASSIGN(const bool is_done,
                          read_directly(group, signature.what(), most_directly, addresses, *this));
      if (!is_done) return in_buffers();
    }
    reads.end(kind, all_bytes / members);
    return Status::ok();
  }

 private:
  Status in_buffers() const {
    return AllToAll{group, results, result_bytes, values, value_bytes, false}.run();
  }
  bool is_mixed() const { return has_overlap && !addresses.empty(); }
  bool is_in_buffers(int member) const {
    return addresses.empty() || addresses[member] == kInBuffers;
  }

  bool overlaps() const {
    const auto number = [](const void* address) {
      return reinterpret_cast<std::uintptr_t>(address);
    };
    std::uintptr_t first = UINTPTR_MAX;
    std::uintptr_t last = 0;
    for (std::size_t i = 0; i < members; ++i) {
      first = std::min(first, value_bytes[i] == 0 ? first : number(values[i]));
      last = std::max(last, value_bytes[i] == 0 ? last : number(values[i]) + value_bytes[i]);
    }
    for (std::size_t i = 0; i < members; ++i) {
      const std::uintptr_t begin = number(results[i]);
      const std::uintptr_t end = begin + result_bytes[i];
      if (result_bytes[i] == 0 || begin >= last || end <= first) continue;
      for (std::size_t k = 0; k < members; ++k)
        if (begin < number(values[k]) + value_bytes[k] && number(values[k]) < end) return true;
    }
    return false;
  }

  void fill(std::size_t step) {
    if (step == 0) {
      auto* const sizes = reinterpret_cast<std::uint64_t*>(group.my_buffer());
      std::copy_n(result_bytes, members, std::copy_n(value_bytes, members, sizes));
      group.share(0, group.my_buffer(), sizes_bytes);
      group.direct_reads().begin(plan);
    }
    if (!plan.is_direct)
      give_pieces(group, slots, values,
                  [&](int member) { return piece_of(value_bytes[member], slots.bytes, step); });
    else if (step == 0)
      give_addresses(
          group, [&](int member) { return values[member]; }, sizes_bytes);
  }

  Status enter() {
    DirectReads& reads = group.direct_reads();
    if (!reads.is_possible()) return checked_barrier(group, signature);
    const bool has_direct = reads.has_direct(static_cast<std::size_t>(signature.call));
    const std::uint64_t mine = (plan.is_direct ? DirectReads::kDirect : 0) |
                               (has_direct && overlaps() ? DirectReads::kOverlaps : 0);
    reads.pause();  // others may be late
    MEMSPAN_PASS(planned_barrier(group, signature, all_bytes / members, mine));
    reads.resume();
    for (int member = 0; has_direct && member < group.size(); ++member) {
      const std::uint64_t word = group.team().word(member, kCallWords);
      has_overlap = has_overlap || (word & DirectReads::kOverlaps) != 0;
      if ((word & DirectReads::kDirect) == 0) continue;
      addresses.resize(members, kInBuffers);
      addresses[member] = address_from(group, member, sizes_bytes);
    }
    return Status::ok();
  }

  const std::uint64_t* sizes_of(int member) const {
    return reinterpret_cast<const std::uint64_t*>(group.buffer_of(member));
  }

  // By the most bytes that a member has for another one in the buffers. All look at all pairs, so
  // that all know.
  Result<std::size_t> agree_on_steps() {
    std::uint64_t most = 0;
    for (int from = 0; from < group.size(); ++from)
      for (int to = 0; to < group.size(); ++to) {
        const std::uint64_t has = sizes_of(from)[to];
        const std::uint64_t wants = sizes_of(to)[members + static_cast<std::size_t>(from)];
        if (has != wants)
          return Status(Code::kInvalidArgument,
                        fmt::format("member {} has {} bytes for member {}, which wants {}", from,
                                    has, to, wants));
        if (from == to) continue;
        std::uint64_t& of_way = is_in_buffers(from) ? most : most_directly;
        of_way = std::max(of_way, has);
      }
    return is_mixed() ? 1 : pieces_of(most, slots.bytes);
  }

  void consume(std::size_t step) {
    if (is_mixed()) return;
    for (int i = 1; i < group.size(); ++i) {
      const int member = other(group, i);
      if (!is_in_buffers(member)) continue;
      const Piece piece = piece_of(result_bytes[member], slots.bytes, step);
      write(at(results[member], piece.begin), group.given(slots, member), piece.bytes);
    }
  }
};

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
  const auto in_buffers = [&] {
    ResultWriter write(bytes);
    return in_pieces(
        group, signature, kPipelineBytes,
        [&](const Piece& piece) {
          if (is_root) group.give_all(0, at(values, piece.begin), piece.bytes);
        },
        [&](const Piece& piece) {
          if (!is_root) write(at(values, piece.begin), group.buffer_of(root), piece.bytes);
        });
  };
  return move_values(
      group, signature, [&](int) { return values; },
      [&](int member) { return member == root && !is_root ? values : nullptr; }, in_buffers);
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
  const CallSignature signature{GroupCall::kScatter, bytes, root};
  const bool is_root = group.rank() == root;
  const auto in_buffers = [&] {
    const Slots slots = cut_buffer(group, 0);
    ResultWriter write(bytes);
    return in_pieces(
        group, signature, slots.bytes,
        [&](const Piece& piece) {
          if (is_root) give_pieces(group, slots, values, [&](int) { return piece; });
        },
        [&](const Piece& piece) {
          write(at(result, piece.begin),
                is_root ? at(values[root], piece.begin) : group.given(slots, root), piece.bytes);
        });
  };
  return move_values(
      group, signature, [&](int member) { return is_root ? values[member] : nullptr; },
      [&](int member) { return member == root ? result : nullptr; }, in_buffers);
}

Status group_all_to_all(ProcessGroup& group, void* const results[],
                        const std::size_t result_bytes[], const void* const values[],
                        const std::size_t value_bytes[]) {
  return AllToAll{group, results, result_bytes, values, value_bytes}.run();
}

}  // namespace memspan::inline pgas
