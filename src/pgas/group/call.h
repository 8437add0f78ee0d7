// SPDX-License-Identifier: Apache-2.0
// A collective of a group begins with a barrier whose payload says what each member calls
// (SignatureField), so that differing calls are found before anything is written.
#pragma once

#include <vector>

#include "pgas/group/process_group.h"
#include "pgas/rma.h"

namespace memspan::inline pgas {

enum class GroupCall : std::uint8_t {
  kBarrier,
  kBroadcast,
  kAllReduce,
  kReduce,
  kReduceScatter,
  kAllGather,
  kGather,
  kScatter,
  kAllToAll,
  kMap,
};
static_assert(static_cast<std::size_t>(GroupCall::kMap) < StageWrites::kKinds);
static_assert(static_cast<std::size_t>(GroupCall::kMap) < DirectReads::kKinds);

// The values that all members must give equally. A value.
struct CallSignature {
  GroupCall call;
  std::size_t bytes = 0;
  int root = -1;  // -1: no root
  int type = -1;  // of a reduction, else -1
  int op = -1;

  const char* what() const;  // "all_reduce"
};

// kInvalidArgument if no member has that number. `role` is the member's in messages.
Status check_member(const ProcessGroup& group, const char* role, int number, int least = 0);

// How many words of that barrier are left for data.
inline constexpr std::size_t kCallWords = 2;
inline constexpr std::size_t kCallDataBytes = (kSignatureWord - kCallWords) * sizeof(std::uint64_t);

// The first barrier of a call; `data` of up to kCallDataBytes goes along. kInvalidArgument on all
// members when they do not all call the same.
Status checked_barrier(ProcessGroup& group, const CallSignature& signature,
                       const void* data = nullptr, std::size_t data_bytes = 0);
// The only barrier of a broadcast, whose data are the root's. The root does not wait: the others
// find differing calls, and the root finds them at a later call.
Status broadcast_barrier(ProcessGroup& group, const CallSignature& signature,
                         const void* data = nullptr, std::size_t data_bytes = 0);
// A member's data of the barrier just over.
void read_call_data(const ProcessGroup& group, int member, void* data, std::size_t bytes);

// As checked_barrier(), at which member 0 says how the next such call goes. All members call it, or
// all checked_barrier(). `bytes`: for one reader. `mine`: bits of DirectReads.
Status planned_barrier(ProcessGroup& group, const CallSignature& signature, std::size_t bytes,
                       std::uint64_t mine = 0);

// Pieces of `bytes` bytes altogether through the pipeline buffers: fill(k) writes to
// group.my_buffer(), then comes a barrier, and consume(k) reads group.buffer_of(). Once the calls
// were compared and before anything is consumed, agree() gives how many pieces there are, at least
// one, or a failure, the same on all members. enter() is the first barrier. `use` holds for each
// piece.
template <typename Fill, typename Enter, typename Agree, typename Consume>
Status in_agreed_steps(ProcessGroup& group, const CallSignature& signature, std::size_t bytes,
                       const BufferUse& use, Fill fill, Enter enter, Agree agree, Consume consume) {
  // The buffer of two barriers ago is free.
  MEMSPAN_PASS(group.is_idle(use) ? group.give_back(signature.what(), use)
                                  : group.team().settle(signature.what()));
  StageWrites& stage = group.stage();
  stage.begin(static_cast<std::size_t>(signature.call), bytes);
  std::size_t steps = 1;
  for (std::size_t step = 0; step < steps; ++step) {
    const bool is_first = step == 0;
    // Calls of two steps begin with the same buffer each time.
    if (!is_first && group.is_idle(use)) [[unlikely]]
      MEMSPAN_PASS(group.give_back(signature.what(), use));
    fill(step);
    // Completes the writes, so that the others can read them. If they do not complete in time, the
    // barrier would wait for the same member once more: this member does not enter it, and the
    // others time out.
    stage.order();
    Status shared = group.complete_shares();
    if (shared.code() == Code::kTimeout) return group.team().give_up(std::move(shared));
    if (is_first) stage.pause();
    // A member that could not be reached is missing at the barrier, which says why.
    MEMSPAN_PASS(is_first ? enter() : group.team().barrier(signature.what()));
    MEMSPAN_PASS(shared);
    if (is_first) {
      MEMSPAN_PASS_ASSIGN(steps, agree());
      stage.resume();
    }
    consume(step);
  }
  stage.end();
  return Status::ok();
}

// How many pieces of `piece` bytes `bytes` are; at least one.
inline std::size_t pieces_of(std::size_t bytes, std::size_t piece) {
  return bytes == 0 ? 1 : (bytes + piece - 1) / piece;
}

// Piece `step` of `bytes` bytes. A value.
struct Piece {
  std::size_t begin;
  std::size_t bytes;
};
inline Piece piece_of(std::size_t bytes, std::size_t piece, std::size_t step) {
  const std::size_t begin = std::min(bytes, step * piece);
  return {begin, std::min(piece, bytes - begin)};
}

// The i-th other member after this one, so that not all read the same first.
inline int other(const ProcessGroup& group, int i) {
  return (group.rank() + i) % group.size();
}

// Writes the parts of a call's result, which are `bytes` bytes together.
class ResultWriter {
 public:
  explicit ResultWriter(std::size_t bytes) : copy_(bytes, MeasuredCopy::Shape::kPieces) {}
  void operator()(void* to, const void* from, std::size_t bytes) {
    if (bytes != 0 && to != from) copy_(to, from, bytes);
  }

 private:
  MeasuredCopy copy_;
};

// The addresses of a member's values for each member, in the buffer that it gives for a barrier.
inline std::uint64_t address_from(const ProcessGroup& group, int member, std::size_t place = 0) {
  return reinterpret_cast<const std::uint64_t*>(group.buffer_of(member) + place)[group.rank()];
}
template <typename From>
void give_addresses(const ProcessGroup& group, From from, std::size_t place = 0) {
  auto* const addresses = reinterpret_cast<std::uint64_t*>(group.my_buffer() + place);
  for (int member = 0; member < group.size(); ++member)
    addresses[member] = reinterpret_cast<std::uintptr_t>(from(member));
}

// Values of as many bytes for each member.
template <typename From, typename To>
struct EvenValues {
  From from;
  To to;
  std::size_t bytes;
  std::size_t from_bytes(int) const { return bytes; }
  std::size_t to_bytes(int) const { return bytes; }
};

// The direct reads of a call, after its first barrier. `addresses`: those of what each other member
// has for this one, or kInBuffers. from(m) are this member's values for m, of from_bytes(m) bytes,
// to(m) the place for those of m, of to_bytes(m), both null for none; no member reads more than
// `most` bytes of another one. False on all members if they have to use the buffers.
inline constexpr std::uint64_t kInBuffers = UINT64_MAX;
template <typename Values>
Result<bool> read_directly(ProcessGroup& group, const char* what, std::size_t most,
                           const std::vector<std::uint64_t>& addresses, const Values& values) {
  DirectReads& reads = group.direct_reads();
  constexpr std::size_t kPiece = DirectReads::kPieceBytes;
  Status read;
  for (std::size_t step = 0; step < pieces_of(most, kPiece); ++step) {
    if (step != 0) MEMSPAN_PASS(reads.meet(what));
    for (int i = 1; i < group.size() && read.is_ok(); ++i) {
      const int member = other(group, i);
      void* const place = values.to(member);
      if (place == nullptr || addresses[member] == kInBuffers) continue;
      const Piece piece = piece_of(values.to_bytes(member), kPiece, step);
      read =
          reads.read(member, at(place, piece.begin), addresses[member] + piece.begin, piece.bytes);
    }
  }
  MEMSPAN_PASS_ASSIGN(const bool is_done, reads.finish(what, read));
  if (is_done) return true;
  Status memory;
  const auto check = [&memory](const void* base, std::size_t bytes, char access) {
    if (base != nullptr && memory.is_ok()) memory = DirectReads::check_memory(base, bytes, access);
  };
  for (int member = 0; member < group.size(); ++member) {
    check(values.from(member), values.from_bytes(member), 'r');
    check(values.to(member), values.to_bytes(member), 'w');
  }
  MEMSPAN_PASS(reads.refuse(what, read, memory));
  return false;
}

// False on all members if they have to use the buffers.
template <typename Values>
Result<bool> move_directly(ProcessGroup& group, const CallSignature& signature,
                           const Values& values) {
  MEMSPAN_PASS(group.team().settle(signature.what()));
  give_addresses(group, values.from);
  MEMSPAN_PASS(planned_barrier(group, signature, signature.bytes, DirectReads::kDirect));
  std::vector<std::uint64_t> addresses(static_cast<std::size_t>(group.size()));
  for (int member = 0; member < group.size(); ++member)
    addresses[member] = address_from(group, member);
  const int rank = group.rank();
  if (void* const place = values.to(rank); place != nullptr && place != values.from(rank))
    ResultWriter(signature.bytes)(place, values.from(rank), signature.bytes);
  return read_directly(group, signature.what(), signature.bytes, addresses, values);
}

// As in_agreed_steps(), for signature.bytes in pieces of `most` bytes.
template <typename Fill, typename Consume>
Status in_pieces(ProcessGroup& group, const CallSignature& signature, std::size_t most, Fill fill,
                 Consume consume) {
  const auto piece = [&](std::size_t step) { return piece_of(signature.bytes, most, step); };
  return in_agreed_steps(
      group, signature, signature.bytes, {most, std::min(most, signature.bytes)},
      [&](std::size_t step) { fill(piece(step)); },
      [&] {
        const bool may_be_direct =
            signature.type < 0 && group.direct_reads().may_serve(signature.bytes);
        return may_be_direct ? planned_barrier(group, signature, signature.bytes)
                             : checked_barrier(group, signature);
      },
      [&] { return Result<std::size_t>(pieces_of(signature.bytes, most)); },
      [&](std::size_t step) { consume(piece(step)); });
}

// Values that move as they are, directly or, by in_buffers(), by way of the buffers. Each member
// says where they are and where they go: from(m) are this one's for member m, to(m) is the place
// for those of member m, null for none.
template <typename From, typename To, typename InBuffers>
Status move_values(ProcessGroup& group, const CallSignature& signature, From from, To to,
                   InBuffers in_buffers) {
  DirectReads& reads = group.direct_reads();
  const auto kind = static_cast<std::size_t>(signature.call);
  const DirectPlan plan = reads.plan(kind, signature.bytes);
  // The time of a rated call is that of all members.
  if (plan.is_rated) MEMSPAN_PASS(checked_barrier(group, signature));
  reads.begin(plan);
  bool is_done = false;
  if (plan.is_direct) {
    MEMSPAN_PASS_ASSIGN(
        is_done, move_directly(group, signature, EvenValues<From, To>{from, to, signature.bytes}));
  }
  if (!is_done) {
    MEMSPAN_PASS(in_buffers());
    if (plan.is_rated) MEMSPAN_PASS(group.team().barrier(signature.what()));
  }
  reads.end(kind, signature.bytes);
  return Status::ok();
}

// A whole number of cache lines of the buffer for each member, behind the `first` bytes.
inline Slots cut_buffer(const ProcessGroup& group, std::size_t first) {
  return {first, (kPipelineBytes - first) / static_cast<std::size_t>(group.size()) / kCacheLine *
                     kCacheLine};
}

// Gives each other member its piece of the values for it.
template <typename PieceFor>
void give_pieces(ProcessGroup& group, const Slots& slots, const void* const values[],
                 PieceFor piece_for) {
  for (int i = 1; i < group.size(); ++i) {
    const int member = other(group, i);
    const Piece piece = piece_for(member);
    group.give(slots, member, at(values[member], piece.begin), piece.bytes);
  }
}

}  // namespace memspan::inline pgas
