// SPDX-License-Identifier: Apache-2.0
// What the data path's functions do when it is not the fast case.
#include <fmt/format.h>
#include <sched.h>

#include "capi/fast_atomic.h"
#include "capi/fast_rma.h"
#include "core/lifetime.h"
#include "node/poll_detector.h"
#include "observe/counters.h"
#include "pgas/rma.h"

namespace memspan::capi {

namespace {

// The bytes that the symmetric side of a strided access touches, first to last.
struct Extent {
  const void* first;
  std::size_t bytes;  // saturated, so that an overflow is found to be out of range
};

Extent extent_of(const void* address, std::ptrdiff_t stride, const Strides& strides,
                 std::size_t element_bytes) {
  const std::size_t step =
      stride < 0 ? -static_cast<std::size_t>(stride) : static_cast<std::size_t>(stride);
  const std::size_t block = bytes_of(strides.block, element_bytes);
  const std::size_t bytes = span_of(strides.count, bytes_of(step, element_bytes), block);
  const auto first = reinterpret_cast<std::uintptr_t>(address) - (stride < 0 ? bytes - block : 0);
  return {reinterpret_cast<const void*>(first), bytes};
}

}  // namespace

template <CallKind kind>
void move_slow_path(const char* call, void* dest, const void* source, std::size_t bytes, int pe,
                    ContextNumber context) try {
  constexpr bool kIsPut = kind == CallKind::kPut;
  RecordedCall recorded(kind, call, pe, bytes);
  // No bytes need no address.
  if (bytes == 0) return require_started(call);
  const Route& route = reach(call, kIsPut ? "dest" : "source", kIsPut ? dest : source, bytes, pe);
  require_not_null(call, kIsPut ? "source" : "dest", kIsPut ? source : dest);
  constexpr auto kMove = kIsPut ? pgas::put : pgas::get;
  require(call, recorded.ends(kMove(routes_of(context), route, dest, source, bytes)));
}
MEMSPAN_CATCH_AND_END(call)

template <CallKind kind>
void move_elsewhere(const char* call, void* dest, const void* source, std::size_t bytes, int pe,
                    ContextNumber context) {
  constexpr bool kIsPut = kind == CallKind::kPut;
  const RouteTable& routes = process_state.routes;
  if (only_counts() && bytes != 0 && !is_null(kIsPut ? source : dest)) [[likely]] {
    const Route* route = routes.find_mapped_recorded(kIsPut ? dest : source, bytes, pe);
    if (route != nullptr) [[likely]] {
      constexpr auto kMove = kIsPut ? pgas::put : pgas::get;
      require(call, kMove(routes, *route, dest, source, bytes));
      return count_call(kind, bytes);
    }
  }
  move_slow_path<kind>(call, dest, source, bytes, pe, context);
}

template <CallKind kind>
void move_strided(const char* call, void* dest, const void* source, const Strides& strides,
                  std::size_t element_bytes, int pe, ContextNumber context) try {
  constexpr bool kIsPut = kind == CallKind::kPut;
  if (strides.count == 0 || strides.block == 0) return require_started(call);
  RecordedCall recorded(kind, call, pe,
                        bytes_of(bytes_of(strides.count, strides.block), element_bytes));
  const Extent extent = kIsPut ? extent_of(dest, strides.dest, strides, element_bytes)
                               : extent_of(source, strides.source, strides, element_bytes);
  const Route& route = reach(call, kIsPut ? "dest" : "source", extent.first, extent.bytes, pe);
  require_not_null(call, kIsPut ? "source" : "dest", kIsPut ? source : dest);
  require(call, recorded.ends(pgas::move_strided(kIsPut ? MoveDirection::kPut : MoveDirection::kGet,
                                                 routes_of(context), route, dest, source, strides,
                                                 element_bytes)));
}
MEMSPAN_CATCH_AND_END(call)

#define MEMSPAN_MOVES(kind)                                                                      \
  template void move_slow_path<kind>(const char*, void*, const void*, std::size_t, int,          \
                                     ContextNumber);                                             \
  template void move_elsewhere<kind>(const char*, void*, const void*, std::size_t, int,          \
                                     ContextNumber);                                             \
  template void move_strided<kind>(const char*, void*, const void*, const Strides&, std::size_t, \
                                   int, ContextNumber);
MEMSPAN_MOVES(CallKind::kPut)
MEMSPAN_MOVES(CallKind::kGet)

std::uint64_t atomic_slow_path(const char* call, const AtomicOp& op, const void* target, int pe,
                               ContextNumber context) try {
  RecordedCall recorded(CallKind::kAtomic, call, pe, op.width);
  const char* argument = op.kind == AtomicKind::kFetch ? "source" : "dest";
  const Route& route = reach(call, argument, target, op.width, pe);
  if (reinterpret_cast<std::uintptr_t>(target) % op.width != 0)
    end_for_misaligned_word(call, argument, target, op.width);
  std::uint64_t before = 0;
  Status done = pgas::atomic_at(routes_of(context), route, op, target, &before);
  if (done.code() == Code::kNotSupported)
    done = done.annotate(fmt::format("{} is {}", argument, target));
  require(call, recorded.ends(done));
  return before;
}
MEMSPAN_CATCH_AND_END(call)

// ---- addresses that may be memory of a device, and those of PEs that are mapped

// By the library's own routes, which are direct where memory is mapped.
void* host_address_beside_device(void* address, int pe) {
  const Route* const route = process_state.world->routes().find(address, 1, pe);
  return route == nullptr || !route->is_direct() ? nullptr : route->address(address);
}

void* mapped_address(void* address, int pe) {
  const RouteTable& routes = process_state.routes;
  if (!routes.is_on_device(address, 1)) return host_address(address, pe);
  if (static_cast<std::uint32_t>(pe) >= routes.peers) return nullptr;
  return process_state.world->device_heap()->address_at(address, pe);
}

bool is_on_device(const char* call, const char* argument, const void* address, std::size_t bytes) {
  reach(call, argument, address, bytes, 0);
  return process_state.routes.is_on_device(address, bytes);
}

void require_host_memory_elsewhere(const char* call, const char* argument, const void* address,
                                   std::size_t bytes) {
  if (is_on_device(call, argument, address, bytes)) end_for_device_memory(call, argument, address);
}

void copy_from_device(const char* call, void* to, const void* from, std::size_t bytes) try {
  require(call, process_state.world->device_heap()->device().copy(to, from, bytes));
}
MEMSPAN_CATCH_AND_END(call)

// ---- looks that a program makes again and again

namespace {

// Much longer than a process that polls itself keeps the core, and less than a time slice.
constexpr auto kLongYield = std::chrono::microseconds(500);

PollDetector& detector() {
  return thread_object<PollDetector>();
}

}  // namespace

bool note_look(const void* word, std::uint64_t found) try {
  if (!detector().is_polling(word, found)) return false;
  const auto begin = Clock::now();
  sched_yield();
  if (Clock::now() - begin > kLongYield) detector().note_long_yield();
  return true;
} catch (const std::bad_alloc&) {
  return false;  // of the first note of a thread: it makes the next one
}

void note_second_look(const void* word, std::uint64_t found) {
  detector().note(word, found);
}

}  // namespace memspan::capi
