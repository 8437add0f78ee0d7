// SPDX-License-Identifier: Apache-2.0
// What kernels of the host device call (<memspan/kernel_calls.h>).
#include <fmt/format.h>
#include <memspan/kernel_calls.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "capi/aclshmem/default_stream.h"
#include "capi/aclshmem/teams.h"
#include "capi/collective_calls.h"
#include "capi/fast_atomic.h"
#include "capi/fast_rma.h"
#include "capi/out_of_memory.h"
#include "capi/strided.h"
#include "capi/wait_sets.h"
#include "core/lifetime.h"
#include "device/host/grid.h"
#include "device/stream.h"
#include "pgas/rma.h"

#define MEMSPAN_EXPORT extern "C" __attribute__((visibility("default")))

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

// Runs `collective` once all blocks have arrived; a meeting of only the grid runs nothing.
void meet_in_grid(const char* call, int team, Status (*collective)(const char* call, Team& team)) {
  // Host code may also call it; its barriers follow the work of the default stream.
  if (current_stream() == nullptr) finish_default_stream();
  const Status met = meet_grid([&] {
    return team == MEMSPAN_KERNEL_GRID ? Status::ok() : collective(call, need_team(call, team));
  });
  require(call, met);
}

// Members of `team` as a shape of the world. Ends the process for a number that none has.
Result<TeamShape> some_of(const char* call, const Team& team, const std::uint32_t* members,
                          std::uint32_t count) {
  std::vector<int> peers;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto member = static_cast<long>(members[i]);
    if (member >= team.size()) end_for_bad_number(call, "PE", member, 0, team.size() - 1);
    peers.push_back(team.shape().peer_of(static_cast<int>(member)));
  }
  std::sort(peers.begin(), peers.end());
  if (std::adjacent_find(peers.begin(), peers.end()) != peers.end())
    return Status(Code::kInvalidArgument, "a PE is in the list twice");
  if (!std::binary_search(peers.begin(), peers.end(), process_state.rank))
    return Status(Code::kInvalidArgument, "this PE is not in the list");
  return TeamShape::of(std::move(peers));
}
Status barrier_some(const char* call, const Team& team, const std::uint32_t* members,
                    std::uint32_t count) {
  auto shape = some_of(call, team, members, count);
  if (!shape.is_ok()) return shape.status();
  const auto some = Team::local(*process_state.local_teams, *shape);
  return capi::barrier(call, *some);
}

// Strides in bytes: an element is a byte then, and a row a block.
Strides rows(std::ptrdiff_t dest_pitch, std::ptrdiff_t source_pitch, std::size_t bytes,
             std::size_t count) {
  return {dest_pitch, source_pitch, bytes, count};
}

// Belongs to the thread that runs a block.
struct alignas(64) Scratch {
  std::byte bytes[MEMSPAN_KERNEL_SCRATCH_BYTES];
};

}  // namespace
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
MEMSPAN_EXPORT void memspan_kernel_put_rows(void* dest, const void* source, ptrdiff_t dest_pitch,
                                            ptrdiff_t source_pitch, size_t bytes, size_t count,
                                            int pe) {
  put_strided("a kernel's strided put", dest, source, rows(dest_pitch, source_pitch, bytes, count),
              1, pe);
}
MEMSPAN_EXPORT void memspan_kernel_get_rows(void* dest, const void* source, ptrdiff_t dest_pitch,
                                            ptrdiff_t source_pitch, size_t bytes, size_t count,
                                            int pe) {
  get_strided("a kernel's strided get", dest, source, rows(dest_pitch, source_pitch, bytes, count),
              1, pe);
}

MEMSPAN_EXPORT uint64_t memspan_kernel_fetch_atomic(int operation, int width, const void* word,
                                                    uint64_t operand, uint64_t compare, int pe) {
  constexpr const char* kCall = "a kernel's atomic";
  switch (static_cast<AtomicKind>(operation)) {
    case AtomicKind::kFetch:
      return apply<AtomicKind::kFetch>(kCall, width, word, operand, compare, pe);
    case AtomicKind::kSet:
    case AtomicKind::kSwap:
      return apply<AtomicKind::kSwap>(kCall, width, word, operand, compare, pe);
    case AtomicKind::kCompareSwap:
      return apply<AtomicKind::kCompareSwap>(kCall, width, word, operand, compare, pe);
    case AtomicKind::kAdd:
      return apply<AtomicKind::kAdd>(kCall, width, word, operand, compare, pe);
    case AtomicKind::kAnd:
      return apply<AtomicKind::kAnd>(kCall, width, word, operand, compare, pe);
    case AtomicKind::kOr:
      return apply<AtomicKind::kOr>(kCall, width, word, operand, compare, pe);
    case AtomicKind::kXor:
      return apply<AtomicKind::kXor>(kCall, width, word, operand, compare, pe);
  }
  end_for_bad_number(kCall, "operation", operation, MEMSPAN_KERNEL_FETCH, MEMSPAN_KERNEL_XOR);
}
MEMSPAN_EXPORT void memspan_kernel_change_atomic(int operation, int width, void* word,
                                                 uint64_t operand, int pe) {
  constexpr const char* kCall = "a kernel's atomic";
  switch (static_cast<AtomicKind>(operation)) {
    case AtomicKind::kSet:
      return change<AtomicKind::kSet>(kCall, width, word, operand, pe);
    case AtomicKind::kAdd:
      return change<AtomicKind::kAdd>(kCall, width, word, operand, pe);
    case AtomicKind::kAnd:
      return change<AtomicKind::kAnd>(kCall, width, word, operand, pe);
    case AtomicKind::kOr:
      return change<AtomicKind::kOr>(kCall, width, word, operand, pe);
    case AtomicKind::kXor:
      return change<AtomicKind::kXor>(kCall, width, word, operand, pe);
    case AtomicKind::kFetch:
    case AtomicKind::kSwap:
    case AtomicKind::kCompareSwap:
      break;
  }
  end_for_bad_number(kCall, "operation", operation, MEMSPAN_KERNEL_SET, MEMSPAN_KERNEL_XOR);
}

MEMSPAN_EXPORT void memspan_kernel_fence(void) try {
  std::atomic_thread_fence(std::memory_order_release);
  if (process_state.has_links) require("a kernel's fence", pgas::fence_links(process_state.routes));
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_EXPORT void memspan_kernel_quiet(void) try {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (process_state.has_links) require("a kernel's quiet", quiet_links(process_state.routes));
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
