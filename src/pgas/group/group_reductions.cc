// SPDX-License-Identifier: Apache-2.0
// Reductions in three ways by size: data that fits travels with the call itself; every member
// combines a small piece as a whole; of a large one every member combines a slice, which the others
// then read. All combine in the order of members.

#include "pgas/group/call.h"

namespace memspan::inline pgas {
namespace {

// Combining is faster than another barrier below this many bytes of all members.
constexpr std::size_t kWholeBytes = std::size_t{16} << 10;

// One reduction for the members that want it.
struct Reducing {
  Reducing(ProcessGroup& its_group, GroupCall call, void* to, const void* from, std::size_t count,
           const ReductionKernel& kernel, int root = -1)
      : group(its_group),
        elements(kernel),
        bytes(count * kernel.bytes),
        signature{call, bytes, root, static_cast<int>(kernel.type), static_cast<int>(kernel.op)},
        result(at(to, 0)),
        values(at(from, 0)),
        wants(root < 0 || group.rank() == root) {}

  ProcessGroup& group;
  const ReductionKernel& elements;
  std::size_t bytes;
  CallSignature signature;
  std::byte* result;
  const std::byte* values;
  bool wants;  // this member is to have the result

  // Combines what the members have; `mine` of this one, source(member) of another.
  template <typename Source>
  void combine(void* into, const void* mine, std::size_t now, Source source) const {
    const void* sources[kMostGroupMembers];
    for (int member = 0; member < group.size(); ++member)
      sources[member] = member == group.rank() ? mine : source(member);
    elements.combine(into, sources, group.size(), now / elements.bytes);
  }
};

Status reduce_in_call(const Reducing& all) {
  if (all.group.is_idle(kNoBuffer)) [[unlikely]]
    MEMSPAN_PASS(all.group.give_back(all.signature.what(), kNoBuffer));
  MEMSPAN_PASS(checked_barrier(all.group, all.signature, all.values, all.bytes));
  if (!all.wants) return Status::ok();
  std::vector<std::array<std::byte, kCallDataBytes>> copies(
      static_cast<std::size_t>(all.group.size()));
  for (int member = 0; member < all.group.size(); ++member)
    read_call_data(all.group, member, copies[member].data(), all.bytes);
  all.combine(all.result, all.values, all.bytes, [&](int member) { return copies[member].data(); });
  return Status::ok();
}

Status reduce_whole(const Reducing& all) {
  return in_pieces(
      all.group, all.signature, kPipelineBytes,
      [&](const Piece&) { all.group.give_all(0, all.values, all.bytes); },
      [&](const Piece&) {
        if (all.wants)
          all.combine(all.result, all.values, all.bytes,
                      [&](int member) { return all.group.buffer_of(member); });
      });
}

// A piece is cut into a slice for each member. The buffer holds, slice by slice, what this member
// has for the others of piece k and, in its own slice, the result of its slice of piece k - 1:
//
//   | for member 0 | for member 1 | result of mine | for member 3 |
struct Slices {
  const Reducing& all;
  const std::size_t members = static_cast<std::size_t>(all.group.size());
  const Slots slots = cut_buffer(all.group, 0);
  const std::size_t piece_bytes = slots.bytes * members;

  // The results of the last piece need one more step than there are pieces.
  std::size_t steps() const { return pieces_of(all.bytes, piece_bytes) + 1; }
  BufferUse use() const { return {slots.bytes, each_of(std::min(all.bytes, piece_bytes))}; }

  void fill(std::size_t step) const {
    ProcessGroup& group = all.group;
    for (int i = 1; i < group.size(); ++i) {
      const Piece part = slice(step, other(group, i));
      group.give(slots, other(group, i), all.values + part.begin, part.bytes);
    }
    if (step == 0) return;
    const Piece sums = slice(step - 1, group.rank());
    const std::size_t place = slots.offset_of(group.rank());
    group.share(place, is_in_place() ? all.result + sums.begin : group.my_buffer() + place,
                sums.bytes);
  }

  // After it this process's next buffer has its results.
  void consume(std::size_t step) const {
    if (all.wants && step > 0)
      for (int i = 1; i < all.group.size(); ++i) {
        const int member = other(all.group, i);
        if (const Piece part = slice(step - 1, member); part.bytes != 0)
          std::memcpy(all.result + part.begin, all.group.slot_of(slots, member), part.bytes);
      }
    const Piece part = slice(step, all.group.rank());
    if (part.bytes == 0) return;
    std::byte* const place = all.group.my_slot(slots);
    std::byte* const sums = all.wants ? all.result + part.begin : place;
    all.combine(sums, all.values + part.begin, part.bytes,
                [&](int member) { return all.group.given(slots, member); });
    if (all.wants && !is_in_place()) all.group.stage().write(place, sums, part.bytes);
  }

 private:
  // This member's sums are made in its caller's memory: no member reads them in the buffer.
  bool is_in_place() const { return all.wants && !all.group.has_near(); }

  // The last piece is also cut evenly. Whole cache lines are whole elements of every type.
  std::size_t each_of(std::size_t bytes) const {
    return std::min(slots.bytes, (bytes / members + kCacheLine) / kCacheLine * kCacheLine);
  }
  // The part of piece `step` that `member` combines.
  Piece slice(std::size_t step, int member) const {
    const Piece piece = piece_of(all.bytes, piece_bytes, step);
    const Piece part =
        piece_of(piece.bytes, each_of(piece.bytes), static_cast<std::size_t>(member));
    return {piece.begin + part.begin, part.bytes};
  }
};

Status reduce(const Reducing& all) {
  if (all.bytes <= kCallDataBytes) return reduce_in_call(all);
  if (all.bytes * static_cast<std::size_t>(all.group.size()) <= 2 * kWholeBytes)
    return reduce_whole(all);
  const Slices slices{all};
  return in_agreed_steps(
      all.group, all.signature, all.bytes, slices.use(),
      [&](std::size_t step) { slices.fill(step); },
      [&] { return checked_barrier(all.group, all.signature); },
      [&] { return Result<std::size_t>(slices.steps()); },
      [&](std::size_t step) { slices.consume(step); });
}

}  // namespace

Status group_all_reduce(ProcessGroup& group, void* result, const void* values, std::size_t count,
                        const ReductionKernel& elements) {
  return reduce({group, GroupCall::kAllReduce, result, values, count, elements});
}

Status group_reduce(ProcessGroup& group, void* result, const void* values, std::size_t count,
                    const ReductionKernel& elements, int root) {
  MEMSPAN_PASS(check_member(group, "root", root));
  return reduce({group, GroupCall::kReduce, result, values, count, elements, root});
}

Status group_reduce_scatter(ProcessGroup& group, void* result, const void* const values[],
                            std::size_t count, const ReductionKernel& elements) {
  const Slots slots = cut_buffer(group, 0);
  const Reducing all(group, GroupCall::kReduceScatter, result, values[group.rank()], count,
                     elements);
  return in_pieces(
      group, all.signature, slots.bytes,
      [&](const Piece& piece) { give_pieces(group, slots, values, [&](int) { return piece; }); },
      [&](const Piece& piece) {
        if (piece.bytes == 0) return;
        all.combine(all.result + piece.begin, all.values + piece.begin, piece.bytes,
                    [&](int member) { return group.given(slots, member); });
      });
}

}  // namespace memspan::inline pgas
