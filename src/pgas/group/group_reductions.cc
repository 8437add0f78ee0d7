// SPDX-License-Identifier: Apache-2.0
// Reductions in three ways by size: data that fits travels with the call itself; every member
// combines a small piece as a whole; of a large one every member combines a slice, which the others
// then read. All combine in the order of members.

#include "pgas/group/call.h"

namespace memspan::pgas {
namespace {

// Combining is faster than another barrier below this many bytes of all members.
constexpr std::size_t kWholeBytes = std::size_t{16} << 10;

// One reduction of `bytes` bytes for the members that want it.
struct Reducing {
  ProcessGroup& group;
  CallSignature signature;
  const ReductionKernel& elements;
  std::byte* result;
  const std::byte* values;
  std::size_t bytes;
  bool wants;  // this member is to have the result

  std::size_t members() const { return static_cast<std::size_t>(group.size()); }
  std::size_t rank() const { return static_cast<std::size_t>(group.rank()); }

  // Combines what the members have; `mine` of this one, source(member) of another.
  template <typename Source>
  void combine(void* into, const void* mine, std::size_t now, Source source) const {
    const void* sources[kMostGroupMembers];
    for (std::size_t member = 0; member < members(); ++member)
      sources[member] = member == rank() ? mine : source(static_cast<int>(member));
    elements.combine(into, sources, group.size(), now / elements.bytes);
  }
};

Status reduce_in_call(const Reducing& all) {
  MEMSPAN_PASS(checked_barrier(all.group, all.signature, all.values, all.bytes));
  if (!all.wants) return Status::ok();
  std::vector<std::byte> copies(all.members() * kCallDataBytes);
  for (std::size_t member = 0; member < all.members(); ++member)
    read_call_data(all.group, static_cast<int>(member), copies.data() + member * kCallDataBytes,
                   all.bytes);
  all.combine(all.result, all.values, all.bytes, [&](int member) {
    return copies.data() + static_cast<std::size_t>(member) * kCallDataBytes;
  });
  return Status::ok();
}

Status reduce_whole(const Reducing& all) {
  return in_steps(
      all.group, all.signature, 1,
      [&](std::size_t) { all.group.give_all(0, all.values, all.bytes); },
      [&](std::size_t) {
        if (all.wants)
          all.combine(all.result, all.values, all.bytes,
                      [&](int member) { return all.group.buffer_of(member); });
      });
}

// A piece is cut into a slice for each member. The buffer holds, slice by slice, what this member
// has for the others of piece k and, in its own slice, the result of its slice of piece k - 1:
//
//   | for member 0 | for member 1 | result of mine | for member 3 |
class Slices {
 public:
  explicit Slices(const Reducing& all)
      : all_(all),
        slots_{0, kPipelineBytes / all.members() / kUnit * kUnit},
        piece_(slots_.bytes * all.members()) {}

  // The results of the last piece need one more step than there are pieces.
  std::size_t steps() const { return pieces_of(all_.bytes, piece_) + 1; }

  void fill(std::size_t step) const {
    for (std::size_t member = 0; member < all_.members(); ++member) {
      const Piece part = slice(step, member);
      if (member == all_.rank() || part.bytes == 0) continue;
      all_.group.give(slots_, static_cast<int>(member), all_.values + part.begin, part.bytes);
    }
    if (step == 0) return;
    const Piece sums = slice(step - 1, all_.rank());
    if (is_in_place())
      all_.group.share_from(my_offset(), all_.result + sums.begin, sums.bytes);
    else
      all_.group.share(my_offset(), sums.bytes);
  }

  // After it this process's next buffer has its results.
  void consume(std::size_t step) const {
    if (all_.wants && step > 0) take_results(step - 1);
    const Piece part = slice(step, all_.rank());
    if (part.bytes == 0) return;
    std::byte* const place = all_.group.my_slot(slots_);
    std::byte* const sums = all_.wants ? all_.result + part.begin : place;
    all_.combine(sums, all_.values + part.begin, part.bytes,
                 [&](int member) { return all_.group.given(slots_, member); });
    if (all_.wants && !is_in_place()) all_.group.stage().write(place, sums, part.bytes);
  }

 private:
  // This member's sums are made in its caller's memory: no member reads them in the buffer.
  bool is_in_place() const { return all_.wants && !all_.group.has_near(); }
  std::size_t my_offset() const { return slots_.offset_of(all_.group.rank()); }

  // Whole elements of every type, and whole cache lines.
  static constexpr std::size_t kUnit = kCacheLine;

  // The part of piece `step` that `member` combines; the last piece is also cut evenly.
  Piece slice(std::size_t step, std::size_t member) const {
    const Piece piece = piece_of(all_.bytes, piece_, step);
    const std::size_t each =
        std::min(slots_.bytes, (piece.bytes / all_.members() + kUnit) / kUnit * kUnit);
    const Piece part = piece_of(piece.bytes, each, member);
    return {piece.begin + part.begin, part.bytes};
  }

  void take_results(std::size_t step) const {
    for (std::size_t i = 1; i < all_.members(); ++i) {
      const std::size_t member = (all_.rank() + i) % all_.members();
      if (const Piece part = slice(step, member); part.bytes != 0)
        std::memcpy(all_.result + part.begin, all_.group.slot_of(slots_, static_cast<int>(member)),
                    part.bytes);
    }
  }

  const Reducing& all_;
  const Slots slots_;
  const std::size_t piece_;
};

Status reduce_by_slices(const Reducing& all) {
  const Slices slices(all);
  return in_steps(
      all.group, all.signature, slices.steps(), [&](std::size_t step) { slices.fill(step); },
      [&](std::size_t step) { slices.consume(step); });
}

Status reduce(const Reducing& all) {
  if (all.bytes <= kCallDataBytes) return reduce_in_call(all);
  if (all.bytes * all.members() <= 2 * kWholeBytes) return reduce_whole(all);
  return reduce_by_slices(all);
}

CallSignature signature_of(GroupCall call, std::size_t bytes, const ReductionKernel& elements,
                           int root = -1) {
  return {call, bytes, root, static_cast<int>(elements.type), static_cast<int>(elements.op)};
}

}  // namespace

Status group_all_reduce(ProcessGroup& group, void* result, const void* values, std::size_t count,
                        const ReductionKernel& elements) {
  const std::size_t bytes = count * elements.bytes;
  return reduce({group, signature_of(GroupCall::kAllReduce, bytes, elements), elements,
                 at(result, 0), at(values, 0), bytes, true});
}

Status group_reduce(ProcessGroup& group, void* result, const void* values, std::size_t count,
                    const ReductionKernel& elements, int root) {
  MEMSPAN_PASS(check_root(group, root));
  const std::size_t bytes = count * elements.bytes;
  return reduce({group, signature_of(GroupCall::kReduce, bytes, elements, root), elements,
                 at(result, 0), at(values, 0), bytes, group.rank() == root});
}

Status group_reduce_scatter(ProcessGroup& group, void* result, const void* const values[],
                            std::size_t count, const ReductionKernel& elements) {
  const std::size_t bytes = count * elements.bytes;
  const auto rank = static_cast<std::size_t>(group.rank());
  const auto members = static_cast<std::size_t>(group.size());
  const Slots slots{0, kPipelineBytes / members / kCacheLine * kCacheLine};
  const Reducing all{group,
                     signature_of(GroupCall::kReduceScatter, bytes, elements),
                     elements,
                     at(result, 0),
                     at(values[rank], 0),
                     bytes,
                     true};
  return in_steps(
      group, all.signature, pieces_of(bytes, slots.bytes),
      [&](std::size_t step) {
        const Piece piece = piece_of(bytes, slots.bytes, step);
        for (std::size_t member = 0; member < members; ++member) {
          if (member == rank || piece.bytes == 0) continue;
          group.give(slots, static_cast<int>(member), at(values[member], piece.begin), piece.bytes);
        }
      },
      [&](std::size_t step) {
        const Piece piece = piece_of(bytes, slots.bytes, step);
        if (piece.bytes == 0) return;
        all.combine(all.result + piece.begin, all.values + piece.begin, piece.bytes,
                    [&](int member) { return group.given(slots, member); });
      });
}

}  // namespace memspan::pgas
