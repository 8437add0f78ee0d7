// SPDX-License-Identifier: Apache-2.0
// What kernels of the host device call (<memspan/kernel_calls.h>).
#include <fmt/format.h>
#include <memspan/kernel_calls.h>

#include "capi/aclshmem/export.h"
#include "capi/fast_atomic.h"
#include "capi/fast_rma.h"
#include "capi/kernel/device_job.h"
#include "capi/smem/stream_table.h"
#include "capi/wait_sets.h"
#include "core/lifetime.h"
#include "device/host/grid.h"
#include "device/stream.h"
#include "pgas/rma.h"

namespace memspan::capi {
namespace {

static_assert(static_cast<int>(AtomicKind::kFetch) == MEMSPAN_KERNEL_FETCH);
static_assert(static_cast<int>(AtomicKind::kSet) == MEMSPAN_KERNEL_SET);
static_assert(static_cast<int>(AtomicKind::kSwap) == MEMSPAN_KERNEL_SWAP);
static_assert(static_cast<int>(AtomicKind::kCompareSwap) == MEMSPAN_KERNEL_COMPARE_SWAP);
static_assert(static_cast<int>(AtomicKind::kAdd) == MEMSPAN_KERNEL_ADD);
static_assert(static_cast<int>(AtomicKind::kAnd) == MEMSPAN_KERNEL_AND);
static_assert(static_cast<int>(AtomicKind::kOr) == MEMSPAN_KERNEL_OR);
static_assert(static_cast<int>(AtomicKind::kXor) == MEMSPAN_KERNEL_XOR);

// Works on either width and returns the value before.
template <AtomicKind kind>
std::uint64_t apply(const char* call, int width, const void* word, std::uint64_t operand,
                    std::uint64_t compare, int pe) {
  if (width == 8)
    return fetch_atomic<kind>(call, static_cast<const std::uint64_t*>(word), operand, compare, pe);
  if (width != 4) end_for_bad_number(call, "width", width, 4, 8);
  return fetch_atomic<kind>(call, static_cast<const std::uint32_t*>(word),
                            static_cast<std::uint32_t>(operand),
                            static_cast<std::uint32_t>(compare), pe);
}
template <AtomicKind kind>
void change(const char* call, int width, void* word, std::uint64_t operand, int pe) {
  if (width == 8) return change_atomic<kind>(call, static_cast<std::uint64_t*>(word), operand, pe);
  if (width != 4) end_for_bad_number(call, "width", width, 4, 8);
  change_atomic<kind>(call, static_cast<std::uint32_t*>(word), static_cast<std::uint32_t>(operand),
                      pe);
}

// By AtomicKind. A set that fetches is a swap. Null: not supported.
using enum AtomicKind;
constexpr const char* kAtomicCall = "a kernel's atomic";
constexpr std::array<decltype(&apply<kFetch>), 8> kFetches{
    apply<kFetch>, apply<kSwap>, apply<kSwap>, apply<kCompareSwap>,
    apply<kAdd>,   apply<kAnd>,  apply<kOr>,   apply<kXor>};
constexpr std::array<decltype(&change<kSet>), 8> kChanges{
    nullptr, change<kSet>, nullptr, nullptr, change<kAdd>, change<kAnd>, change<kOr>, change<kXor>};
static_assert(static_cast<int>(kXor) == 7);

template <typename Function>
Function by_kind(const std::array<Function, 8>& functions, int kind, int least) {
  const auto place = static_cast<std::size_t>(kind);
  if (place < functions.size() && functions[place] != nullptr) return functions[place];
  end_for_bad_number(kAtomicCall, "operation", kind, least, MEMSPAN_KERNEL_XOR);
}

// Runs `collective` once all blocks have arrived; a meeting of only the grid runs nothing.
void meet_in_grid(const char* call, int team, Status (*collective)(const char* call, Team& team)) {
  // Host code may also call it; its barriers follow the work of the default stream.
  if (current_stream() == nullptr) finish_default_stream();
  const Status met = meet_grid([&] {
    return team == MEMSPAN_KERNEL_GRID ? Status::ok() : collective(call, need_team(call, team));
  });
  require(call, met);
}

// A barrier of some members of `team`. Ends the process for a number that none has.
Status barrier_some(const char* call, const Team& team, const std::uint32_t* members,
                    std::uint32_t count) {
  std::vector<int> peers;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto member = static_cast<long>(members[i]);
    if (member >= team.size()) end_for_bad_number(call, "PE", member, 0, team.size() - 1);
    peers.push_back(team.shape().peer_of(static_cast<int>(member)));
  }
  std::sort(peers.begin(), peers.end());
  if (std::adjacent_find(peers.begin(), peers.end()) != peers.end())
    return {Code::kInvalidArgument, "a PE is in the list twice"};
  if (!std::binary_search(peers.begin(), peers.end(), process_state.rank))
    return {Code::kInvalidArgument, "this PE is not in the list"};
  const auto some = Team::local(*process_state.local_teams, TeamShape::of(std::move(peers)));
  return capi::barrier(call, *some);
}

// ---- what kernels on a device ask for, done by the calls that kernels of the host make

void* address_of(const memspan_kernel_question& question) {
  return reinterpret_cast<void*>(question.address);  // NOLINT(performance-no-int-to-ptr)
}

void answer_put(memspan_kernel_request& request) {
  const memspan_kernel_question& what = request.question;
  if (what.rows == 1)
    return memspan_kernel_put(address_of(what), request.payload, what.row_bytes, what.pe);
  memspan_kernel_put_rows(address_of(what), request.payload, what.pitch,
                          static_cast<std::ptrdiff_t>(what.row_bytes), what.row_bytes, what.rows,
                          what.pe);
}
void answer_get(memspan_kernel_request& request) {
  const memspan_kernel_question& what = request.question;
  if (what.rows == 1)
    return memspan_kernel_get(request.payload, address_of(what), what.row_bytes, what.pe);
  memspan_kernel_get_rows(request.payload, address_of(what),
                          static_cast<std::ptrdiff_t>(what.row_bytes), what.pitch, what.row_bytes,
                          what.rows, what.pe);
}

// Not memspan_kernel_sync(), whose grid is one of the host.
void meet_for_device(const char* call, int team,
                     Status (*collective)(const char* call, Team& team)) {
  require(call, collective(call, need_team(call, team)));
}

std::uint64_t as_answer(int number) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
}

// ----

// Belongs to the thread that runs a block.
struct alignas(64) Scratch {
  std::byte bytes[MEMSPAN_KERNEL_SCRATCH_BYTES];
};

}  // namespace

std::uint64_t answer_request(memspan_kernel_request& request) {
  const memspan_kernel_question& what = request.question;
  const auto kind = static_cast<int>(what.atomic_kind);
  const auto width = static_cast<int>(what.atomic_width);
  switch (what.operation) {
    case MEMSPAN_KERNEL_ASK_PUT:
      answer_put(request);
      return 0;
    case MEMSPAN_KERNEL_ASK_GET:
      answer_get(request);
      return 0;
    case MEMSPAN_KERNEL_ASK_CHANGE:
      memspan_kernel_change_atomic(kind, width, address_of(what), what.operand, what.pe);
      return 0;
    case MEMSPAN_KERNEL_ASK_FETCH:
      return memspan_kernel_fetch_atomic(kind, width, address_of(what), what.operand, what.compare,
                                         what.pe);
    case MEMSPAN_KERNEL_ASK_FENCE:
      memspan_kernel_fence();
      return 0;
    case MEMSPAN_KERNEL_ASK_QUIET:  // not memspan_kernel_quiet(), which waits for what is asked
                                    // here
      std::atomic_thread_fence(std::memory_order_seq_cst);
      require("a kernel's quiet", pgas::quiet_links(process_state.routes));
      return 0;
    case MEMSPAN_KERNEL_ASK_TEAM_MY_PE:
      return as_answer(memspan_kernel_team_my_pe(what.team));
    case MEMSPAN_KERNEL_ASK_TEAM_N_PES:
      return as_answer(memspan_kernel_team_n_pes(what.team));
    case MEMSPAN_KERNEL_ASK_TRANSLATE:
      return as_answer(memspan_kernel_team_translate_pe(what.team, what.pe, what.other_team));
    case MEMSPAN_KERNEL_ASK_SYNC:
      meet_for_device("a kernel's sync", what.team, capi::sync);
      return 0;
    case MEMSPAN_KERNEL_ASK_BARRIER:
      meet_for_device("a kernel's barrier", what.team, capi::barrier);
      return 0;
    default:
      break;
  }
  end_for_bad_number("a kernel's request", "operation", static_cast<long>(what.operation),
                     MEMSPAN_KERNEL_ASK_PUT, MEMSPAN_KERNEL_ASK_BARRIER);
}

}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int memspan_kernel_my_pe(void) {
  return is_started() ? process_state.rank : -1;
}
MEMSPAN_EXPORT int memspan_kernel_n_pes(void) {
  return is_started() ? process_state.world->size() : -1;
}
MEMSPAN_EXPORT uint64_t memspan_kernel_instance(void) {
  return process_state.instance;
}
MEMSPAN_EXPORT void memspan_kernel_need_instance(uint64_t instance) try {
  if (instance == process_state.instance) return;
  require("a kernel's aclshmemx_instance_ctx_set",
          Status(Code::kInvalidArgument,
                 fmt::format("instance_id is {}, and the host launched it in instance {}: choose "
                             "the instance before the launch",
                             instance, process_state.instance)));
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_EXPORT int memspan_kernel_team_my_pe(int team) {
  const Team* const found = find_team(team);
  return found == nullptr ? -1 : found->index();
}
MEMSPAN_EXPORT int memspan_kernel_team_n_pes(int team) {
  const Team* const found = find_team(team);
  return found == nullptr ? -1 : found->size();
}
MEMSPAN_EXPORT int memspan_kernel_team_translate_pe(int source_team, int pe, int dest_team) {
  const Team* const from = find_team(source_team);
  const Team* const to = find_team(dest_team);
  if (from == nullptr || to == nullptr || pe < 0 || pe >= from->size()) return -1;
  return to->shape().member_of(from->peer_of(pe));
}

// The host's calls are the same functions.
MEMSPAN_EXPORT int aclshmem_my_pe(void) __attribute__((alias("memspan_kernel_my_pe")));
MEMSPAN_EXPORT int aclshmem_n_pes(void) __attribute__((alias("memspan_kernel_n_pes")));
MEMSPAN_EXPORT int aclshmem_team_my_pe(shmem_team_t team)
    __attribute__((alias("memspan_kernel_team_my_pe")));
MEMSPAN_EXPORT int aclshmem_team_n_pes(shmem_team_t team)
    __attribute__((alias("memspan_kernel_team_n_pes")));
MEMSPAN_EXPORT int aclshmem_team_translate_pe(shmem_team_t src_team, int src_pe,
                                              shmem_team_t dest_team)
    __attribute__((alias("memspan_kernel_team_translate_pe")));

MEMSPAN_EXPORT void* memspan_kernel_ptr(const void* address, int pe) {
  return host_address(const_cast<void*>(address), pe);
}

MEMSPAN_EXPORT void memspan_kernel_put(void* dest, const void* source, size_t bytes, int pe) {
  put<1>("a kernel's put", dest, source, bytes, pe);
}
MEMSPAN_EXPORT void memspan_kernel_get(void* dest, const void* source, size_t bytes, int pe) {
  get<1>("a kernel's get", dest, source, bytes, pe);
}
MEMSPAN_EXPORT void memspan_kernel_put_word4(void* dest, uint32_t value, int pe) {
  put_value("a kernel's put", static_cast<std::uint32_t*>(dest), value, pe);
}
MEMSPAN_EXPORT void memspan_kernel_put_word8(void* dest, uint64_t value, int pe) {
  put_value("a kernel's put", static_cast<std::uint64_t*>(dest), value, pe);
}
MEMSPAN_EXPORT uint32_t memspan_kernel_get_word4(const void* source, int pe) {
  return get_value("a kernel's get", static_cast<const std::uint32_t*>(source), pe);
}
MEMSPAN_EXPORT uint64_t memspan_kernel_get_word8(const void* source, int pe) {
  return get_value("a kernel's get", static_cast<const std::uint64_t*>(source), pe);
}
// Strides in bytes: an element is a byte then, and a row a block.
MEMSPAN_EXPORT void memspan_kernel_put_rows(void* dest, const void* source, ptrdiff_t dest_pitch,
                                            ptrdiff_t source_pitch, size_t bytes, size_t count,
                                            int pe) {
  move_strided<CallKind::kPut>("a kernel's strided put", dest, source,
                               Strides{dest_pitch, source_pitch, bytes, count}, 1, pe);
}
MEMSPAN_EXPORT void memspan_kernel_get_rows(void* dest, const void* source, ptrdiff_t dest_pitch,
                                            ptrdiff_t source_pitch, size_t bytes, size_t count,
                                            int pe) {
  move_strided<CallKind::kGet>("a kernel's strided get", dest, source,
                               Strides{dest_pitch, source_pitch, bytes, count}, 1, pe);
}

MEMSPAN_EXPORT uint64_t memspan_kernel_fetch_atomic(int operation, int width, const void* word,
                                                    uint64_t operand, uint64_t compare, int pe) {
  return by_kind(kFetches, operation, MEMSPAN_KERNEL_FETCH)(kAtomicCall, width, word, operand,
                                                            compare, pe);
}
MEMSPAN_EXPORT void memspan_kernel_change_atomic(int operation, int width, void* word,
                                                 uint64_t operand, int pe) {
  by_kind(kChanges, operation, MEMSPAN_KERNEL_SET)(kAtomicCall, width, word, operand, pe);
}

MEMSPAN_EXPORT void memspan_kernel_fence(void) {
  std::atomic_thread_fence(std::memory_order_release);
}
MEMSPAN_EXPORT void memspan_kernel_quiet(void) try {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (process_state.has_links) require("a kernel's quiet", capi::quiet_links(process_state.routes));
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_EXPORT void* memspan_kernel_scratch(void) try { return thread_object<Scratch>().bytes; }
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_EXPORT void memspan_kernel_let_others_begin(void) try {
  require("a kernel's start", let_other_blocks_run());
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_EXPORT unsigned memspan_kernel_block(void) {
  return current_block();
}
MEMSPAN_EXPORT unsigned memspan_kernel_blocks(void) {
  return current_blocks();
}
MEMSPAN_EXPORT void memspan_kernel_sync(int team) try {
  meet_in_grid("a kernel's sync", team, capi::sync);
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_EXPORT void memspan_kernel_barrier(int team) try {
  // Makes this block's stores visible to all threads that leave the barrier.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  meet_in_grid("a kernel's barrier", team, capi::barrier);
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_EXPORT void memspan_kernel_barrier_some(int team, const uint32_t* members,
                                                uint32_t count) try {
  constexpr const char* kCall = "a kernel's partial barrier";
  if (members == nullptr) end_for_null(kCall, "the list of PEs", members);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  require(kCall,
          meet_grid([&] { return barrier_some(kCall, need_team(kCall, team), members, count); }));
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_EXPORT void memspan_kernel_wait(int (*is_true)(void* context), void* context,
                                        const char* call) try {
  require_started(call);
  require(call, let_other_blocks_run());
  wait_until(call, [=] { return is_true(context) != 0; });
}
MEMSPAN_CATCH_AND_END(__func__)
