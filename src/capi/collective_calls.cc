// SPDX-License-Identifier: Apache-2.0
#include "capi/collective_calls.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "capi/access.h"
#include "capi/kernel/device_job.h"
#include "observe/recorded_call.h"
#include "pgas/team.h"

namespace memspan::capi {
namespace {

// Added to a barrier's number ahead of a call's name in its words: what no other call's words begin
// with, nor those that a barrier without words leaves from an earlier one.
constexpr std::uint64_t kNameFollows = 0x6d656d7370616e21;
constexpr std::size_t kNameBytes = (kPayloadWords - 1) * sizeof(std::uint64_t);

// The call that a member is in, by the words of its barrier; empty for words of another kind.
std::string_view name_of_call(const Team& team, int member, char (&room)[kNameBytes + 1]) {
  if (team.word(member, 0) != kNameFollows + team.sequence()) return {};
  for (int i = 1; i < kPayloadWords; ++i) {
    const std::uint64_t word = team.word(member, i);
    std::memcpy(room + static_cast<std::size_t>(i - 1) * sizeof word, &word, sizeof word);
  }
  room[kNameBytes] = '\0';
  return room;
}

Status compare_calls(const char* call, Team& team) {
  std::uint64_t words[kPayloadWords] = {kNameFollows + team.sequence() + 1};
  const std::string_view mine = std::string_view(call).substr(0, kNameBytes);
  std::memcpy(words + 1, mine.data(), mine.size());
  MEMSPAN_PASS(team.barrier(call, words, kPayloadWords));
  char room[kNameBytes + 1];
  for (int member = 0; member < team.size(); ++member) {
    const std::string_view other = name_of_call(team, member, room);
    if (other != mine)
      return {
          Code::kInvalidArgument,
          fmt::format("PE {} is in {}; all members of a team make the same calls in "
                      "the same order{}",
                      team.peer_of(member), other.empty() ? "another call" : other, kCallsDiffer)};
  }
  return Status::ok();
}

// Under SHMEM_DEBUG two barriers more than the collective itself needs.
Status compare(const char* call, Team& team, std::initializer_list<SignatureField> values = {}) {
  MEMSPAN_PASS(team.prepare(call));
  if (!process_state.compares_collectives) [[likely]]
    return Status::ok();
  MEMSPAN_PASS(compare_calls(call, team));
  if (values.size() == 0) return Status::ok();
  std::uint64_t words[kPayloadWords] = {};
  int used = 0;
  for (const SignatureField& value : values) words[used++] = value.value;
  MEMSPAN_PASS(team.barrier(call, words, used));
  return compare_with_all(team, {values.begin(), values.size()});
}

// The offset in the symmetric memory; 0 for an empty buffer, which needs no address.
std::uint64_t place_of(const void* address, std::size_t bytes) {
  return bytes == 0 ? 0 : process_state.routes.offset_of(address);
}

constexpr const char* kDestPlace = "the place of dest in the symmetric memory";
constexpr const char* kSourcePlace = "the place of source in the symmetric memory";

struct Sizes {
  std::size_t dest;
  std::size_t source;
};

// Both buffers are symmetric and, under SHMEM_DEBUG, all members gave the same arguments.
Status check(const Collective& collective, const char* count_name, const Sizes& bytes,
             const SignatureField& first = {"", 0}, const SignatureField& second = {"", 0}) {
  const auto& [call, team, elements] = collective;
  require_symmetric(call, "dest", elements.dest, bytes.dest);
  require_symmetric(call, "source", elements.source, bytes.source);
  return compare(call, team,
                 {{count_name, elements.count},
                  {kDestPlace, place_of(elements.dest, bytes.dest)},
                  {kSourcePlace, place_of(elements.source, bytes.source)},
                  first,
                  second});
}

std::size_t members(const Team& team) {
  return static_cast<std::size_t>(team.size());
}

std::size_t bytes_of(const Collective& collective) {
  return capi::bytes_of(collective.elements.count, collective.elements.bytes);
}

// From the first to the last of `count` elements at `stride`.
std::size_t strided_bytes(const Collective& collective, const char* argument,
                          std::ptrdiff_t stride) {
  if (stride < 1)
    end_for_bad_number(collective.call, argument, stride, 1, std::numeric_limits<long>::max());
  const std::size_t step =
      capi::bytes_of(static_cast<std::size_t>(stride), collective.elements.bytes);
  return span_of(capi::bytes_of(collective.elements.count, members(collective.team)), step,
                 collective.elements.bytes);
}

}  // namespace

Status barrier(const char* call, Team& team) {
  RecordedCall recorded(CallKind::kCollective, call, kNobodyNamed, 0);
  MEMSPAN_PASS(compare(call, team));
  if (process_state.has_links) finish_device_requests();
  return recorded.ends(pgas::barrier(team, call));
}

Status sync(const char* call, Team& team) {
  RecordedCall recorded(CallKind::kCollective, call, kNobodyNamed, 0);
  MEMSPAN_PASS(compare(call, team));
  return recorded.ends(pgas::sync(team, call));
}

Status broadcast(const Collective& collective, int root, pgas::RootsDest roots_dest) {
  const auto& [call, team, elements] = collective;
  RecordedCall recorded(CallKind::kCollective, call, kNobodyNamed, bytes_of(collective));
  if (root < 0 || root >= team.size())
    end_for_bad_number(call, "PE_root", root, 0, team.size() - 1);
  const std::size_t bytes = bytes_of(collective);
  MEMSPAN_PASS(
      check(collective, "nelems", {bytes, bytes}, {"PE_root", static_cast<std::uint64_t>(root)}));
  return recorded.ends(
      pgas::broadcast(team, call, elements.dest, elements.source, bytes, root, roots_dest));
}

// How much comes from the others is only known in the call itself.
Status collect(const Collective& collective) {
  const auto& [call, team, elements] = collective;
  RecordedCall recorded(CallKind::kCollective, call, kNobodyNamed, bytes_of(collective));
  const std::size_t bytes = bytes_of(collective);
  require_symmetric(call, "dest", elements.dest, bytes);
  require_symmetric(call, "source", elements.source, bytes);
  MEMSPAN_PASS(compare(call, team));  // a member without elements needs no buffers
  return recorded.ends(pgas::collect(team, call, elements.dest, elements.source, bytes));
}

Status fcollect(const Collective& collective) {
  const auto& [call, team, elements] = collective;
  RecordedCall recorded(CallKind::kCollective, call, kNobodyNamed, bytes_of(collective));
  const std::size_t bytes = bytes_of(collective);
  MEMSPAN_PASS(check(collective, "nelems", {capi::bytes_of(bytes, members(team)), bytes}));
  return recorded.ends(pgas::fcollect(team, call, elements.dest, elements.source, bytes));
}

Status alltoall(const Collective& collective) {
  const auto& [call, team, elements] = collective;
  RecordedCall recorded(CallKind::kCollective, call, kNobodyNamed, bytes_of(collective));
  const std::size_t bytes = bytes_of(collective);
  const std::size_t all = capi::bytes_of(bytes, members(team));
  MEMSPAN_PASS(check(collective, "nelems", {all, all}));
  return recorded.ends(pgas::alltoall(team, call, elements.dest, elements.source, bytes));
}

Status alltoalls(const Collective& collective, std::ptrdiff_t dest_stride,
                 std::ptrdiff_t source_stride) {
  const auto& [call, team, elements] = collective;
  RecordedCall recorded(CallKind::kCollective, call, kNobodyNamed, bytes_of(collective));
  const Sizes bytes{strided_bytes(collective, "dst", dest_stride),
                    strided_bytes(collective, "sst", source_stride)};
  MEMSPAN_PASS(check(collective, "nelems", bytes, {"dst", static_cast<std::uint64_t>(dest_stride)},
                     {"sst", static_cast<std::uint64_t>(source_stride)}));
  return recorded.ends(pgas::alltoalls(team, call, elements.dest, elements.source, dest_stride,
                                       source_stride, elements.count, elements.bytes));
}

Status reduce(const Collective& collective, const pgas::ReductionKernel& kernel) {
  const auto& [call, team, elements] = collective;
  RecordedCall recorded(CallKind::kCollective, call, kNobodyNamed, bytes_of(collective));
  const std::size_t bytes = bytes_of(collective);
  MEMSPAN_PASS(check(collective, "nreduce", {bytes, bytes}));
  return recorded.ends(
      pgas::reduce(team, call, elements.dest, elements.source, elements.count, kernel));
}

Status scan(const Collective& collective, pgas::ScanKind kind,
            const pgas::ReductionKernel& kernel) {
  const auto& [call, team, elements] = collective;
  RecordedCall recorded(CallKind::kCollective, call, kNobodyNamed, bytes_of(collective));
  const std::size_t bytes = bytes_of(collective);
  MEMSPAN_PASS(check(collective, "nelems", {bytes, bytes}));
  return recorded.ends(
      pgas::scan(team, call, kind, elements.dest, elements.source, elements.count, kernel));
}

}  // namespace memspan::capi
