// SPDX-License-Identifier: Apache-2.0
// What the data path's functions do when it is not the fast case.
#include <fmt/format.h>

#include "capi/access.h"
#include "capi/atomic.h"
#include "capi/rma.h"
#include "node/recorded_call.h"
#include "pgas/atomic.h"

namespace memspan::capi {

namespace {

void put_anywhere(const char* call, void* dest, const void* source, std::size_t bytes, int pe,
                  ContextNumber context) {
  // No bytes need no address.
  if (bytes == 0) return require_started(call);
  const Route& route = reach(call, "dest", dest, bytes, pe);
  require_not_null(call, "source", source);
  require(call, pgas::put(routes_of(context), route, dest, source, bytes));
}

void get_anywhere(const char* call, void* dest, const void* source, std::size_t bytes, int pe,
                  ContextNumber context) {
  if (bytes == 0) return require_started(call);
  const Route& route = reach(call, "source", source, bytes, pe);
  require_not_null(call, "dest", dest);
  require(call, pgas::get(routes_of(context), route, dest, source, bytes));
}

}  // namespace

void put_slow_path(const char* call, void* dest, const void* source, std::size_t bytes, int pe,
                   ContextNumber context) {
  if (!is_recording()) return put_anywhere(call, dest, source, bytes, pe, context);
  const RecordedCall recorded(CallKind::kPut, call, pe, bytes);
  const RouteTable& routes = process_state.routes;
  const Route* const route = bytes == 0 ? nullptr : routes.find_mapped_recorded(dest, bytes, pe);
  if (route == nullptr || is_null(source))
    return put_anywhere(call, dest, source, bytes, pe, context);
  copy_bytes(route->address(static_cast<std::byte*>(dest)), source, bytes);
  route->notify();
}

void get_slow_path(const char* call, void* dest, const void* source, std::size_t bytes, int pe,
                   ContextNumber context) {
  if (!is_recording()) return get_anywhere(call, dest, source, bytes, pe, context);
  const RecordedCall recorded(CallKind::kGet, call, pe, bytes);
  const RouteTable& routes = process_state.routes;
  const Route* const route = bytes == 0 ? nullptr : routes.find_mapped_recorded(source, bytes, pe);
  if (route == nullptr || is_null(dest))
    return get_anywhere(call, dest, source, bytes, pe, context);
  copy_bytes(dest, route->address(static_cast<const std::byte*>(source)), bytes);
  pgas::complete_get();
}

std::uint64_t atomic_slow_path(const char* call, const AtomicOp& op, const void* target, int pe,
                               ContextNumber context) {
  const RecordedCall recorded(CallKind::kAtomic, call, pe, op.width);
  const char* argument = op.kind == AtomicKind::kFetch ? "source" : "dest";
  const Route& route = reach(call, argument, target, op.width, pe);
  if (reinterpret_cast<std::uintptr_t>(target) % op.width != 0)
    end_for_misaligned_word(call, argument, target, op.width);
  std::uint64_t before = 0;
  Status done = pgas::atomic_at(routes_of(context), route, op, target, &before);
  if (done.code() == Code::kNotSupported)
    done = done.annotate(fmt::format("{} is {}", argument, target));
  require(call, done);
  return before;
}

}  // namespace memspan::capi
