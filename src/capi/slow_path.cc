// SPDX-License-Identifier: Apache-2.0
// What the data path's functions do when it is not the fast case.
#include <fmt/format.h>

#include "capi/access.h"
#include "capi/fast_atomic.h"
#include "capi/fast_rma.h"
#include "observe/recorded_call.h"
#include "pgas/rma.h"

namespace memspan::capi {

void put_slow_path(const char* call, void* dest, const void* source, std::size_t bytes, int pe,
                   ContextNumber context) try {
  RecordedCall recorded(CallKind::kPut, call, pe, bytes);
  // No bytes need no address.
  if (bytes == 0) return require_started(call);
  const Route& route = reach(call, "dest", dest, bytes, pe);
  require_not_null(call, "source", source);
  require(call, recorded.ends(pgas::put(routes_of(context), route, dest, source, bytes)));
}
MEMSPAN_CATCH_AND_END(call)

void get_slow_path(const char* call, void* dest, const void* source, std::size_t bytes, int pe,
                   ContextNumber context) try {
  RecordedCall recorded(CallKind::kGet, call, pe, bytes);
  if (bytes == 0) return require_started(call);
  const Route& route = reach(call, "source", source, bytes, pe);
  require_not_null(call, "dest", dest);
  require(call, recorded.ends(pgas::get(routes_of(context), route, dest, source, bytes)));
}
MEMSPAN_CATCH_AND_END(call)

void put_elsewhere(const char* call, void* dest, const void* source, std::size_t bytes, int pe,
                   ContextNumber context) {
  const RouteTable& routes = process_state.routes;
  if (only_counts() && bytes != 0 && !is_null(source)) [[likely]] {
    const Route* route = routes.find_mapped_recorded(dest, bytes, pe);
    if (route != nullptr) [[likely]] {
      require(call, pgas::put(routes, *route, dest, source, bytes));
      return count_call(CallKind::kPut, bytes);
    }
  }
  put_slow_path(call, dest, source, bytes, pe, context);
}

void get_elsewhere(const char* call, void* dest, const void* source, std::size_t bytes, int pe,
                   ContextNumber context) {
  const RouteTable& routes = process_state.routes;
  if (only_counts() && bytes != 0 && !is_null(dest)) [[likely]] {
    const Route* route = routes.find_mapped_recorded(source, bytes, pe);
    if (route != nullptr) [[likely]] {
      require(call, pgas::get(routes, *route, dest, source, bytes));
      return count_call(CallKind::kGet, bytes);
    }
  }
  get_slow_path(call, dest, source, bytes, pe, context);
}

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

}  // namespace memspan::capi
