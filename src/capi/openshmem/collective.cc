// SPDX-License-Identifier: Apache-2.0
// Collectives of teams and of active sets. Arguments that no collective can work with end the
// process. Other failures are a death, or under SHMEM_DEBUG members' arguments that differ.
#include "pgas/collective/collective.h"

#include <fmt/format.h>

#include <cstring>
#include <initializer_list>

#include "capi/access.h"
#include "capi/kernel/device_job.h"
#include "capi/openshmem/handles.h"
#include "capi/openshmem/profiling_alias.h"
#include "observe/counters.h"
#include "pgas/reduction/kernels.h"

namespace memspan::capi {
namespace {

// ---- what members compare under SHMEM_DEBUG

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

// ---- collectives that move or combine data

struct Elements {
  void* dest;
  const void* source;
  std::size_t count;  // of one member, or of one block
  std::size_t bytes;  // of one
};

struct Collective {
  const char* call;
  Team& team;
  Elements elements;
};

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

// ---- collectives of teams

// A collective by its function and what that wants besides the elements. Out of line: hundreds of
// names call it.
template <typename... More>
[[gnu::noinline]] int collective(const char* call, shmem_team_t team, const Elements& elements,
                                 Status (*function)(const Collective&, More...),
                                 std::type_identity_t<More>... more) try {
  return require(call, function({call, team_of(call, team), elements}, more...)) ? 0 : 1;
}
MEMSPAN_CATCH_IN(call, 1)

// ---- active sets

struct ActiveSet {
  int start;
  int log_stride;
  int size;
  long* sync;
};

// Null when a death was survived.
Team* set_team(const char* call, const ActiveSet& set) {
  require_started(call);
  require_host_word(call, "pSync", set.sync);
  if (set.log_stride < 0 || set.log_stride > 30)
    end_for_bad_number(call, "logPE_stride", set.log_stride, 0, 30);
  const auto team = process_state.local_teams->active_set(
      call, TeamShape{set.start, 1 << set.log_stride, set.size}, set.sync);
  return require(call, team.status()) ? *team : nullptr;
}

void set_meet(const char* call, const ActiveSet& set,
              Status (*collective)(const char* call, Team& team)) try {
  if (Team* team = set_team(call, set)) require(call, collective(call, *team));
}
MEMSPAN_CATCH_AND_END(call)

// A collective by its function and what that wants besides the elements.
template <typename... More>
void set_collective(const char* call, const ActiveSet& set, const Elements& elements,
                    Status (*function)(const Collective&, More...),
                    std::type_identity_t<More>... more) try {
  if (Team* team = set_team(call, set)) require(call, function({call, *team, elements}, more...));
}
MEMSPAN_CATCH_AND_END(call)

void set_reduce(const char* call, const ActiveSet& set, void* dest, const void* source, int count,
                const pgas::ReductionKernel& kernel) {
  require_started(call);
  if (count < 0) end_for_bad_number(call, "nreduce", count, 0, INT32_MAX);
  set_collective(call, set, {dest, source, static_cast<std::size_t>(count), kernel.bytes},
                 capi::reduce, kernel);
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

}  // namespace memspan::capi

using namespace memspan::capi;
namespace pgas = memspan::pgas;

// `parameters` is what comes after the buffers.
#define MEMSPAN_COLLECTIVE_WITH(function, type, size, parameters, ...)                      \
  MEMSPAN_PROFILED(                                                                         \
      int, function,                                                                        \
      (shmem_team_t team, type * dest, const type* source, MEMSPAN_UNPACK parameters)) {    \
    return collective("shmem_" #function, team, {dest, source, nelems, size}, __VA_ARGS__); \
  }
#define MEMSPAN_COLLECTIVE(function, type, size, ...) \
  MEMSPAN_COLLECTIVE_WITH(function, type, size, (size_t nelems), __VA_ARGS__)
#define MEMSPAN_BROADCAST(function, type, size)                                                   \
  MEMSPAN_COLLECTIVE_WITH(function, type, size, (size_t nelems, int PE_root), broadcast, PE_root, \
                          pgas::RootsDest::kWritten)
#define MEMSPAN_ALLTOALLS(function, type, size)                                                \
  MEMSPAN_COLLECTIVE_WITH(function, type, size, (ptrdiff_t dst, ptrdiff_t sst, size_t nelems), \
                          alltoalls, dst, sst)

#define MEMSPAN_TEAM_TYPED(name, type)                              \
  MEMSPAN_BROADCAST(name##_broadcast, type, sizeof(type))           \
  MEMSPAN_COLLECTIVE(name##_collect, type, sizeof(type), collect)   \
  MEMSPAN_COLLECTIVE(name##_fcollect, type, sizeof(type), fcollect) \
  MEMSPAN_COLLECTIVE(name##_alltoall, type, sizeof(type), alltoall) \
  MEMSPAN_ALLTOALLS(name##_alltoalls, type, sizeof(type))
MEMSPAN_RMA_TYPES(MEMSPAN_TEAM_TYPED)

MEMSPAN_BROADCAST(broadcastmem, void, 1)
MEMSPAN_COLLECTIVE(collectmem, void, 1, collect)
MEMSPAN_COLLECTIVE(fcollectmem, void, 1, fcollect)
MEMSPAN_COLLECTIVE(alltoallmem, void, 1, alltoall)
MEMSPAN_ALLTOALLS(alltoallsmem, void, 1)

#define MEMSPAN_REDUCE(function, type, operation)          \
  MEMSPAN_COLLECTIVE(function, type, sizeof(type), reduce, \
                     (pgas::reduction_kernel<type, pgas::Operator::k##operation>()))

#define MEMSPAN_TEAM_BITWISE(name, type)       \
  MEMSPAN_REDUCE(name##_and_reduce, type, And) \
  MEMSPAN_REDUCE(name##_or_reduce, type, Or)   \
  MEMSPAN_REDUCE(name##_xor_reduce, type, Xor)
MEMSPAN_BITWISE_REDUCE_TYPES(MEMSPAN_TEAM_BITWISE)

#define MEMSPAN_TEAM_ORDERED(name, type)       \
  MEMSPAN_REDUCE(name##_max_reduce, type, Max) \
  MEMSPAN_REDUCE(name##_min_reduce, type, Min)
MEMSPAN_RMA_TYPES(MEMSPAN_TEAM_ORDERED)

#define MEMSPAN_TEAM_ARITHMETIC(name, type)    \
  MEMSPAN_REDUCE(name##_sum_reduce, type, Sum) \
  MEMSPAN_REDUCE(name##_prod_reduce, type, Product)
MEMSPAN_ARITHMETIC_REDUCE_TYPES(MEMSPAN_TEAM_ARITHMETIC)

#define MEMSPAN_SCAN(function, type, kind)                                     \
  MEMSPAN_COLLECTIVE(function, type, sizeof(type), scan, pgas::ScanKind::kind, \
                     (pgas::reduction_kernel<type, pgas::Operator::kSum>()))
#define MEMSPAN_SCANS(name, type)                   \
  MEMSPAN_SCAN(name##_sum_inscan, type, kInclusive) \
  MEMSPAN_SCAN(name##_sum_exscan, type, kExclusive)
MEMSPAN_ARITHMETIC_REDUCE_TYPES(MEMSPAN_SCANS)

// ---- the collectives of active sets (deprecated since 1.5, still in use): the team behind the set
// does the work. pSync is only needed until that team is made; pWrk is not needed.

#define MEMSPAN_SET (ActiveSet{PE_start, logPE_stride, PE_size, pSync})
#define MEMSPAN_SET_PARAMETERS int PE_start, int logPE_stride, int PE_size, long *pSync

MEMSPAN_PROFILED(void, barrier, (MEMSPAN_SET_PARAMETERS)) {
  pshmem_quiet();
  set_meet("shmem_barrier", MEMSPAN_SET, barrier);
}
MEMSPAN_PROFILED(void, sync, (MEMSPAN_SET_PARAMETERS)) {
  set_meet("shmem_sync", MEMSPAN_SET, memspan::capi::sync);
}

#define MEMSPAN_SET_CALL(function, size, parameters, ...)                                       \
  MEMSPAN_PROFILED(                                                                             \
      void, function,                                                                           \
      (void* dest, const void* source, MEMSPAN_UNPACK parameters, MEMSPAN_SET_PARAMETERS)) {    \
    set_collective("shmem_" #function, MEMSPAN_SET, {dest, source, nelems, size}, __VA_ARGS__); \
  }
#define MEMSPAN_SET_SIZED(bits, size)                                                       \
  MEMSPAN_SET_CALL(broadcast##bits, size, (size_t nelems, int PE_root), broadcast, PE_root, \
                   pgas::RootsDest::kLeft)                                                  \
  MEMSPAN_SET_CALL(collect##bits, size, (size_t nelems), collect)                           \
  MEMSPAN_SET_CALL(fcollect##bits, size, (size_t nelems), fcollect)                         \
  MEMSPAN_SET_CALL(alltoall##bits, size, (size_t nelems), alltoall)                         \
  MEMSPAN_SET_CALL(alltoalls##bits, size, (ptrdiff_t dst, ptrdiff_t sst, size_t nelems),    \
                   alltoalls, dst, sst)
MEMSPAN_ACTIVE_SET_SIZES(MEMSPAN_SET_SIZED)  // NOLINT(readability-function-size): the standard's

#define MEMSPAN_TO_ALL(name, type, verb, operation)                                               \
  MEMSPAN_PROFILED(void, name##_##verb##_to_all,                                                  \
                   (type * dest, const type* source, int nreduce, int PE_start, int logPE_stride, \
                    int PE_size, [[maybe_unused]] type* pWrk, long* pSync)) {                     \
    set_reduce("shmem_" #name "_" #verb "_to_all", MEMSPAN_SET, dest, source, nreduce,            \
               (pgas::reduction_kernel<type, pgas::Operator::k##operation>()));                   \
  }
#define MEMSPAN_SET_BITWISE(name, type) \
  MEMSPAN_TO_ALL(name, type, and, And)  \
  MEMSPAN_TO_ALL(name, type, or, Or)    \
  MEMSPAN_TO_ALL(name, type, xor, Xor)
MEMSPAN_TO_ALL_BITWISE_TYPES(MEMSPAN_SET_BITWISE)

#define MEMSPAN_SET_ORDERED(name, type) \
  MEMSPAN_TO_ALL(name, type, max, Max)  \
  MEMSPAN_TO_ALL(name, type, min, Min)
MEMSPAN_TO_ALL_ORDERED_TYPES(MEMSPAN_SET_ORDERED)

#define MEMSPAN_SET_ARITHMETIC(name, type) \
  MEMSPAN_TO_ALL(name, type, sum, Sum)     \
  MEMSPAN_TO_ALL(name, type, prod, Product)
MEMSPAN_TO_ALL_ARITHMETIC_TYPES(MEMSPAN_SET_ARITHMETIC)
