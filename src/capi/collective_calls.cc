// SPDX-License-Identifier: Apache-2.0
#include "capi/collective_calls.h"

#include <fmt/format.h>

#include <cstring>
#include <initializer_list>

#include "capi/access.h"
#include "capi/kernel/device_job.h"
#include "observe/counters.h"
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

// The arguments of a collective that are equal on all members, and the bytes of its buffers.
struct Arguments {
  const char* count_name;  // null: none need be equal
  std::size_t dest_bytes;
  std::size_t source_bytes;
  SignatureField first = {""};
  SignatureField second = {""};
};

// Both buffers are symmetric and, under SHMEM_DEBUG, all members gave the same arguments.
Status check(const Collective& collective, const Arguments& arguments) {
  const auto& [call, team, elements] = collective;
  require_symmetric(call, "dest", elements.dest, arguments.dest_bytes);
  require_symmetric(call, "source", elements.source, arguments.source_bytes);
  if (arguments.count_name == nullptr) return compare(call, team);
  return compare(
      call, team,
      {{arguments.count_name, elements.count},
       {"the place of dest in the symmetric memory", place_of(elements.dest, arguments.dest_bytes)},
       {"the place of source in the symmetric memory",
        place_of(elements.source, arguments.source_bytes)},
       arguments.first,
       arguments.second});
}

std::size_t block_bytes(const Collective& collective) {
  return bytes_of(collective.elements.count, collective.elements.bytes);
}

// The bytes of one block for each member.
std::size_t all_bytes(const Collective& collective) {
  return bytes_of(block_bytes(collective), static_cast<std::size_t>(collective.team.size()));
}

// From the first to the last of `count` elements at `stride`.
std::size_t strided_bytes(const Collective& collective, const char* argument,
                          std::ptrdiff_t stride) {
  if (stride < 1)
    end_for_bad_number(collective.call, argument, stride, 1, std::numeric_limits<long>::max());
  const std::size_t step = bytes_of(static_cast<std::size_t>(stride), collective.elements.bytes);
  return span_of(
      bytes_of(collective.elements.count, static_cast<std::size_t>(collective.team.size())), step,
      collective.elements.bytes);
}

template <typename... More>
using Way = Status(Team& team, const char* call, void* dest, const void* source, More... more);

// Makes a collective that `way` does once the arguments are checked.
template <typename... More>
Status make(const Collective& collective, const Arguments& arguments, Way<More...>* way,
            std::type_identity_t<More>... more) {
  const auto& [call, team, elements] = collective;
  RecordedCall recorded(CallKind::kCollective, call, kNobodyNamed, block_bytes(collective));
  MEMSPAN_PASS(check(collective, arguments));
  return recorded.ends(way(team, call, elements.dest, elements.source, more...));
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
  return recorded.ends(team.barrier(call));
}

Status broadcast(const Collective& collective, int root, pgas::RootsDest roots_dest) {
  const int last = collective.team.size() - 1;
  if (root < 0 || root > last) end_for_bad_number(collective.call, "PE_root", root, 0, last);
  const std::size_t bytes = block_bytes(collective);
  return make(collective, {"nelems", bytes, bytes, {"PE_root", static_cast<std::uint64_t>(root)}},
              pgas::broadcast, bytes, root, roots_dest);
}

// How much comes from the others is only known in the call itself, and a member without elements
// needs no buffers.
Status collect(const Collective& collective) {
  const std::size_t bytes = block_bytes(collective);
  return make(collective, {nullptr, bytes, bytes}, pgas::collect, bytes);
}

Status fcollect(const Collective& collective) {
  const std::size_t bytes = block_bytes(collective);
  return make(collective, {"nelems", all_bytes(collective), bytes}, pgas::fcollect, bytes);
}

Status alltoall(const Collective& collective) {
  const std::size_t all = all_bytes(collective);
  return make(collective, {"nelems", all, all}, pgas::alltoall, block_bytes(collective));
}

Status alltoalls(const Collective& collective, std::ptrdiff_t dest_stride,
                 std::ptrdiff_t source_stride) {
  const Arguments arguments{"nelems",
                            strided_bytes(collective, "dst", dest_stride),
                            strided_bytes(collective, "sst", source_stride),
                            {"dst", static_cast<std::uint64_t>(dest_stride)},
                            {"sst", static_cast<std::uint64_t>(source_stride)}};
  return make(collective, arguments, pgas::alltoalls, dest_stride, source_stride,
              collective.elements.count, collective.elements.bytes);
}

Status reduce(const Collective& collective, const pgas::ReductionKernel& kernel) {
  const std::size_t bytes = block_bytes(collective);
  return make(collective, {"nreduce", bytes, bytes}, pgas::reduce, collective.elements.count,
              kernel);
}

Status scan(const Collective& collective, pgas::ScanKind kind,
            const pgas::ReductionKernel& kernel) {
  const std::size_t bytes = block_bytes(collective);
  return make(collective, {"nelems", bytes, bytes}, pgas::scan, kind, collective.elements.count,
              kernel);
}

}  // namespace memspan::capi
