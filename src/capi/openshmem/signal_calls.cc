// SPDX-License-Identifier: Apache-2.0
// Signals, with and without a put.
#include "pgas/rma.h"

#include "capi/access.h"
#include "capi/openshmem/handles.h"
#include "capi/openshmem/profiling_alias.h"
#include "capi/polling.h"
#include "observe/counters.h"

namespace memspan::capi {
namespace {

SignalOp signal_op(const char* call, int number) {
  if (number != SHMEM_SIGNAL_SET && number != SHMEM_SIGNAL_ADD) [[unlikely]]
    end_for_bad_number(call, "sig_op", number, SHMEM_SIGNAL_SET, SHMEM_SIGNAL_ADD);
  return static_cast<SignalOp>(number);
}

struct Signal {
  std::uint64_t* word;
  std::uint64_t value;
  int op;
};

// A link, global variables, no bytes, a mistake.
[[gnu::cold, gnu::noinline]] void put_signal_slow_path(const char* call, void* dest,
                                                       const void* source, std::size_t bytes,
                                                       Signal signal, int pe,
                                                       ContextNumber context) try {
  RecordedCall recorded(CallKind::kSignal, call, pe, bytes + sizeof *signal.word);
  SignalOp op = signal_op(call, signal.op);
  const Route& to_signal = reach_word(call, "sig_addr", signal.word, pe);
  const Route& to_data = bytes == 0 ? to_signal : reach(call, "dest", dest, bytes, pe);
  if (bytes != 0) require_not_null(call, "source", source);
  const pgas::PutSignalRoutes ways{to_data, to_signal};
  require(call, recorded.ends(pgas::put_signal(routes_of(context), ways, dest, source, bytes,
                                               signal.word, signal.value, op)));
}
MEMSPAN_CATCH_AND_END(call)

// Handles calls that miss the inline case: counts them (observe/counters.h) or takes the slow path.
[[gnu::noinline]] void put_signal_elsewhere(const char* call, void* dest, const void* source,
                                            std::size_t bytes, const Signal& signal, int pe,
                                            ContextNumber context) {
  const RouteTable& routes = process_state.routes;
  if (only_counts() && bytes != 0 && !is_null(source) &&
      routes.is_in_heap<sizeof *signal.word>(signal.word) && is_aligned(signal.word)) [[likely]] {
    if (const Route* route = routes.find_mapped_recorded(dest, bytes, pe)) {
      require(call, pgas::put_signal(routes, {*route, *route}, dest, source, bytes, signal.word,
                                     signal.value, signal_op(call, signal.op)));
      return count_call(CallKind::kSignal, bytes + sizeof *signal.word);
    }
  }
  put_signal_slow_path(call, dest, source, bytes, signal, pe, context);
}

template <std::size_t kElementBytes>
inline void put_signal(const char* call, void* dest, const void* source, std::size_t count,
                       const Signal& signal, int pe, ContextNumber context) {
  const RouteTable& routes = process_state.routes;
  const Route* route = routes.find_mapped<kElementBytes>(dest, count, pe);
  if (route == nullptr || is_null(source) || !routes.is_in_heap<sizeof *signal.word>(signal.word) ||
      !is_aligned(signal.word)) [[unlikely]]
    return put_signal_elsewhere(call, dest, source, bytes_of(count, kElementBytes), signal, pe,
                                context);
  require(call, pgas::put_signal(routes, {*route, *route}, dest, source, count * kElementBytes,
                                 signal.word, signal.value, signal_op(call, signal.op)));
}

void update(const char* call, std::uint64_t* word, std::uint64_t value, SignalOp op, int pe,
            ContextNumber context) try {
  RecordedCall recorded(CallKind::kSignal, call, pe, sizeof *word);
  const Route& route = reach_word(call, "sig_addr", word, pe);
  if (route.is_direct()) [[likely]]
    require(call, recorded.ends(pgas::signal(process_state.routes, route, word, value, op)));
  else
    require(call, recorded.ends(pgas::signal(routes_of(context), route, word, value, op)));
}
MEMSPAN_CATCH_AND_END(call)

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;

#define MEMSPAN_PUT_SIGNAL_AS(function, type, size)                                       \
  MEMSPAN_IN_CONTEXT(void, function,                                                      \
                     (type * dest, const type* source, size_t nelems, uint64_t* sig_addr, \
                      uint64_t signal, int sig_op),                                       \
                     put_signal<size>(call, dest, source, nelems,                         \
                                      Signal{sig_addr, signal, sig_op}, peer, context))

#define MEMSPAN_PUT_SIGNAL(function, type, size) \
  MEMSPAN_PUT_SIGNAL_AS(function, type, size)    \
  MEMSPAN_PUT_SIGNAL_AS(function##_nbi, type, size)

#define MEMSPAN_SIGNAL_TYPED(name, type) MEMSPAN_PUT_SIGNAL(name##_put_signal, type, sizeof(type))
MEMSPAN_RMA_TYPES(MEMSPAN_SIGNAL_TYPED)
#define MEMSPAN_SIGNAL_SIZED(bits, size) MEMSPAN_PUT_SIGNAL(put##bits##_signal, void, size)
MEMSPAN_SIZES(MEMSPAN_SIGNAL_SIZED)
MEMSPAN_PUT_SIGNAL(putmem_signal, void, 1)

MEMSPAN_IN_CONTEXT(void, signal_set, (uint64_t * sig_addr, uint64_t signal),
                   update(call, sig_addr, signal, memspan::SignalOp::kSet, peer, context))
MEMSPAN_IN_CONTEXT(void, signal_add, (uint64_t * sig_addr, uint64_t signal),
                   update(call, sig_addr, signal, memspan::SignalOp::kAdd, peer, context))

MEMSPAN_PROFILED(uint64_t, signal_fetch, (const uint64_t* sig_addr)) {
  constexpr const char* kCall = "shmem_signal_fetch";
  if (is_device_word(kCall, "sig_addr", sig_addr)) [[unlikely]]
    return copy_of_device_word(kCall, sig_addr);
  const auto look = [=] { return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE); };
  return has_to_note() ? noted(sig_addr, look) : look();
}
