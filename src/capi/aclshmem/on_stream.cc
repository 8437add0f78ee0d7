// SPDX-License-Identifier: Apache-2.0
// Calls of the CANN SHMEM API in stream order: the stream's thread makes the direct call, which
// ends the process in the same cases. device_stream.h is for streams of the device.
#include <atomic>
#include <utility>

#include "capi/aclshmem/default_stream.h"
#include "capi/aclshmem/device_stream.h"
#include "capi/aclshmem/export.h"
#include "capi/aclshmem/teams.h"
#include "capi/collective_calls.h"
#include "capi/failures.h"
#include "capi/fast_atomic.h"
#include "capi/smem/stream_table.h"
#include "pgas/rma.h"

namespace memspan::capi {
namespace {

std::atomic<bool> uses_default_stream{false};

// A cudaStream_t. A job without a device has none.
bool is_of_device(aclrtStream stream) {
  return stream != nullptr && process_state.world->wants_device() && may_be_of_device(stream);
}

// The caller checks the job and the stream, the stream's thread the rest.
template <typename Work>
void submit_to_host(const char* call, aclrtStream stream, Work work) {
  const auto done = [work = std::move(work)] {
    work();
    return Status::ok();
  };
  if (stream == nullptr) {
    uses_default_stream.store(true, std::memory_order_release);
    stream = default_stream();
  }
  auto used = streams().use(stream);
  if (!used) end_for_bad_handle(call, "stream", stream);
  require(call, used->submit(done));
}

// For streams of the host and of the device.
template <typename Work>
void submit(const char* call, aclrtStream stream, Work work) {
  require_started(call);
  if (is_of_device(stream)) return call_on_device(call, stream, std::move(work));
  submit_to_host(call, stream, std::move(work));
}

// A barrier on a device's stream ignores earlier work of the default stream.
template <typename Work>
void submit_barrier(const char* call, aclshmem_team_t team, aclrtStream stream, Work work) {
  require_started(call);
  if (!is_of_device(stream)) return submit_to_host(call, stream, std::move(work));
  if (team == ACLSHMEM_TEAM_INVALID) return;
  Team& found = need_team(call, team);
  call_on_device(call, stream, [call, &found] { require(call, barrier(call, found)); });
}

}  // namespace

void finish_default_stream() {
  if (!uses_default_stream.load(std::memory_order_acquire)) return;
  auto stream = streams().use(default_stream());
  // Its work never fails: what does ends the process.
  if (stream && !stream->is_own_work()) (void)stream->synchronize(Deadline::never());
}

}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT void aclshmemx_putmem_on_stream(void* dst, void* src, size_t elem_size, int32_t pe,
                                               aclrtStream stream) try {
  constexpr const char* kCall = "aclshmemx_putmem_on_stream";
  require_started(kCall);
  if (is_of_device(stream)) return put_on_device(kCall, stream, dst, src, elem_size, pe);
  submit_to_host(kCall, stream, [=] { aclshmem_putmem(dst, src, elem_size, pe); });
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_EXPORT void aclshmemx_getmem_on_stream(void* dst, void* src, size_t elem_size, int32_t pe,
                                               aclrtStream stream) try {
  constexpr const char* kCall = "aclshmemx_getmem_on_stream";
  require_started(kCall);
  if (is_of_device(stream)) return get_on_device(kCall, stream, dst, src, elem_size, pe);
  submit_to_host(kCall, stream, [=] { aclshmem_getmem(dst, src, elem_size, pe); });
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_EXPORT void aclshmemx_quiet_on_stream(aclrtStream stream) try {
  constexpr const char* kCall = "aclshmemx_quiet_on_stream";
  submit(kCall, stream, [] {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (process_state.has_links) require(kCall, quiet_links(process_state.routes));
  });
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_EXPORT void aclshmemx_signal_op_on_stream(int32_t* sig_addr, int32_t signal, int sig_op,
                                                  int pe, aclrtStream stream) try {
  constexpr const char* kCall = "aclshmemx_signal_op_on_stream";
  if (sig_op != ACLSHMEM_SIGNAL_SET && sig_op != ACLSHMEM_SIGNAL_ADD)
    end_for_bad_number(kCall, "sig_op", sig_op, ACLSHMEM_SIGNAL_SET, ACLSHMEM_SIGNAL_ADD);
  require_started(kCall);
  if (is_of_device(stream)) return signal_on_device(kCall, stream, sig_addr, signal, sig_op, pe);
  submit_to_host(kCall, stream, [=] {
    if (sig_op == ACLSHMEM_SIGNAL_SET)
      change_atomic<AtomicKind::kSet>(kCall, sig_addr, signal, pe);
    else
      change_atomic<AtomicKind::kAdd>(kCall, sig_addr, signal, pe);
  });
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_EXPORT void aclshmemx_signal_wait_until_on_stream(int32_t* sig_addr, int cmp,
                                                          int32_t cmp_val, aclrtStream stream) try {
  constexpr const char* kCall = "aclshmemx_signal_wait_until_on_stream";
  require_started(kCall);
  if (is_of_device(stream)) return wait_on_device(kCall, stream, sig_addr, cmp, cmp_val);
  submit_to_host(kCall, stream, [=] { aclshmem_signal_wait_until(sig_addr, cmp, cmp_val); });
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_EXPORT void aclshmemx_barrier_on_stream(aclshmem_team_t team, aclrtStream stream) try {
  submit_barrier("aclshmemx_barrier_on_stream", team, stream, [=] { aclshmem_barrier(team); });
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_EXPORT void aclshmemx_barrier_all_on_stream(aclrtStream stream) try {
  submit_barrier("aclshmemx_barrier_all_on_stream", ACLSHMEM_TEAM_WORLD, stream,
                 [] { aclshmem_barrier_all(); });
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_EXPORT void aclshmemx_handle_wait(aclshmem_handle_t handle, aclrtStream stream) try {
  submit_barrier("aclshmemx_handle_wait", handle.team_id, stream,
                 [=] { aclshmem_barrier(handle.team_id); });
}
MEMSPAN_CATCH_AND_END(__func__)
