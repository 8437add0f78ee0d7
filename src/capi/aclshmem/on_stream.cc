// SPDX-License-Identifier: Apache-2.0
// Calls of the CANN SHMEM API in stream order: the stream's thread makes the direct call, which
// ends the process in the same cases.

#include "capi/aclshmem/export.h"
#include "capi/fast_atomic.h"
#include "capi/smem/fork_aware_singleton.h"
#include "capi/smem/stream_table.h"
#include "capi/wait_sets.h"
#include "device/choice.h"
#include "device/host/copy.h"
#include "pgas/rma.h"

namespace memspan::capi {
namespace {

// ---- streams of the device (a cudaStream_t). Copies with an end of the device are the stream's
// own; the rest is done by calls of the stream, on threads of ours where they may wait for peers.
// Mistakes end the process, as those of the direct calls do: at once where they are known.

Device& device() {
  return *other_device();
}

// A peer's memory that is not mapped here, reached by its link without looking at local ends: those
// are the host's here.
struct FarPlace {
  Link* link;
  const RemoteRegion* region;
  std::uint64_t offset;

  RemotePlace place(std::size_t at = 0) const { return {*region, offset + at}; }
};

FarPlace far_place(const Route& route, const void* address, int pe) {
  return {process_state.world->route(pe).link, route.region,
          process_state.routes.offset_of(address)};
}

OperationContext& operations() {
  return *process_state.routes.operations;
}

bool is_device_memory(const void* address) {
  return process_state.routes.is_on_device(address, 1) || device().owns(address);
}

// Threads for work that a call of a device's stream waits for. The driver's own thread makes such
// calls but may not use the device. A call that waits for peers may have to serve their requests,
// which may concern device memory. Thread-safe. There are as many threads as there were calls at
// one time.
class CallThreads {
 public:
  // Does it on one of them, and returns when it is done. A failure: there can be no such thread.
  Status run(const std::function<void()>& work) MEMSPAN_EXCLUDES(mutex_) {
    // Limited, because a caller that waits without a limit may do the stream's work itself.
    constexpr auto kLook = std::chrono::hours(1);
    std::unique_ptr<Stream> stream = take();
    MEMSPAN_TRY(stream->submit([&work] {
      work();
      return Status::ok();
    }),
                "a thread for a call of a device's stream");
    while (stream->synchronize(Deadline::after(kLook)).code() == Code::kTimeout) {
    }
    MutexLock lock(mutex_);
    idle_.push_back(std::move(stream));
    return Status::ok();
  }

 private:
  std::unique_ptr<Stream> take() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (idle_.empty()) return std::make_unique<Stream>();
    std::unique_ptr<Stream> stream = std::move(idle_.back());
    idle_.pop_back();
    return stream;
  }

  Mutex mutex_;
  std::vector<std::unique_ptr<Stream>> idle_ MEMSPAN_GUARDED_BY(mutex_);
};

// In a call of a stream: work that waits for peers.
void wait_in_call(const char* call, const std::function<void()>& work) {
  require(call, fork_aware_singleton<CallThreads>().run(work));
}

// For work that waits for nothing and uses no device.
void call_at_once(const char* call, void* stream, std::function<void()> work) {
  require(call, device().begin_call(std::move(work), stream));
}

// The stream continues once `work` is done.
void call_on_device(const char* call, void* stream, std::function<void()> work) {
  call_at_once(call, stream, [call, work = std::move(work)] { wait_in_call(call, work); });
}

// Both are mapped here.
void copy_near(const char* call, void* stream, void* to, const void* from, std::size_t bytes,
               const Route& route) {
  if (is_device_memory(to) || is_device_memory(from)) {
    require(call, device().begin_copy(to, from, bytes, stream));
    return;
  }
  call_at_once(call, stream, [=, &route] {
    copy_bytes(to, from, bytes);
    route.notify();
  });
}

// `symmetric` is the end at `pe`, and `local` the other one.
template <CallKind kind>
void move_on_device(const char* call, void* stream, void* symmetric, void* local, std::size_t bytes,
                    int pe) {
  constexpr bool kIsPut = kind == CallKind::kPut;
  if (bytes == 0) return;
  const Route& route = reach(call, kIsPut ? "dest" : "source", symmetric, bytes, pe);
  require_not_null(call, kIsPut ? "source" : "dest", local);
  if (void* const there = mapped_address(symmetric, pe); there != nullptr)
    return copy_near(call, stream, kIsPut ? there : local, kIsPut ? local : there, bytes, route);
  const auto move = [=, far = far_place(route, symmetric, pe)](void* part, std::size_t at,
                                                               std::size_t count) {
    require(call, kIsPut ? far.link->put(operations(), far.place(at), part, count)
                         : far.link->get(operations(), part, far.place(at), count));
  };
  if (!device().owns(local)) return call_on_device(call, stream, [=] { move(local, 0, bytes); });
  const auto move_part = [=](std::byte* part, std::size_t at, std::size_t count) {
    wait_in_call(call, [&] { move(part, at, count); });
  };
  require(call, device().begin_parts(kIsPut ? Device::Parts::kRead : Device::Parts::kWrite, local,
                                     bytes, move_part, stream));
}

// ACLSHMEM_SIGNAL_SET or _ADD, behind all that the stream did before. A word in memory of the
// device can only be set.
void signal_on_device(const char* call, void* stream, std::int32_t* word, std::int32_t value,
                      int op, int pe) {
  const Route& route = reach_word(call, "sig_addr", word, pe);
  if (!process_state.routes.is_on_device(word, sizeof *word)) {
    // The library's routes: no look at ends, and so no CUDA.
    const RouteTable& plain = process_state.world->routes();
    const Route& way = plain.route_of(word, pe);
    const AtomicOp update{op == ACLSHMEM_SIGNAL_SET ? AtomicKind::kSet : AtomicKind::kAdd,
                          sizeof *word, static_cast<std::uint32_t>(value)};
    return call_on_device(call, stream, [=, &plain, &way] {
      require(call, pgas::atomic_at(plain, way, update, word, nullptr));
    });
  }
  if (op != ACLSHMEM_SIGNAL_SET) return end_for_device_memory(call, "sig_addr", word);
  if (void* const there = mapped_address(word, pe); there != nullptr) {
    const auto fill = [value](std::byte* part, std::size_t, std::size_t) {
      std::memcpy(part, &value, sizeof value);
    };
    require(call, device().begin_parts(Device::Parts::kWrite, there, sizeof value, fill, stream));
    return call_at_once(call, stream, [&route] { route.notify(); });
  }
  const FarPlace to = far_place(route, word, pe);
  call_on_device(call, stream, [=] {
    require(call, to.link->put(operations(), to.place(), &value, sizeof value));
  });
}

// The stream continues once the word of this process fulfils the comparison. A word in device
// memory can be waited for with EQ and GE.
void wait_on_device(const char* call, void* stream, std::int32_t* word, int cmp,
                    std::int32_t value) {
  const bool is_device = is_device_word(call, "sig_addr", word);
  const Compare compare = checked_compare(call, cmp);
  if (!is_device)
    return call_on_device(call, stream,
                          [=] { wait_until(call, [=] { return holds(word, compare, value); }); });
  if (compare != Compare::kEqual && compare != Compare::kGreaterEqual)
    end_process(call, Status(Code::kNotSupported,
                             "a stream of the device waits for a word in memory of the device with "
                             "ACLSHMEM_CMP_EQ or ACLSHMEM_CMP_GE"));
  require(call, device().begin_wait(word, static_cast<std::uint32_t>(value),
                                    compare == Compare::kEqual ? Device::WaitFor::kEqual
                                                               : Device::WaitFor::kAtLeast,
                                    stream));
}

// ---- streams of both kinds

std::atomic<bool> uses_default_stream{false};

// A cudaStream_t. A job without a device has none. Ends the process when it is in no job.
bool is_of_device(const char* call, aclrtStream stream) {
  require_started(call);
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

// A barrier on a device's stream ignores earlier work of the default stream.
template <typename Work>
void submit_barrier(const char* call, aclshmem_team_t team, aclrtStream stream, Work work) try {
  if (!is_of_device(call, stream)) return submit_to_host(call, stream, std::move(work));
  if (team == ACLSHMEM_TEAM_INVALID) return;
  Team& found = need_team(call, team);
  call_on_device(call, stream, [call, &found] { require(call, barrier(call, found)); });
}
MEMSPAN_CATCH_AND_END(call)

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
  if (is_of_device(__func__, stream))
    return move_on_device<CallKind::kPut>(__func__, stream, dst, src, elem_size, pe);
  submit_to_host(__func__, stream, [=] { aclshmem_putmem(dst, src, elem_size, pe); });
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_EXPORT void aclshmemx_getmem_on_stream(void* dst, void* src, size_t elem_size, int32_t pe,
                                               aclrtStream stream) try {
  if (is_of_device(__func__, stream))
    return move_on_device<CallKind::kGet>(__func__, stream, src, dst, elem_size, pe);
  submit_to_host(__func__, stream, [=] { aclshmem_getmem(dst, src, elem_size, pe); });
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_EXPORT void aclshmemx_quiet_on_stream(aclrtStream stream) try {
  constexpr const char* kCall = "aclshmemx_quiet_on_stream";
  const auto quiet = [] {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (process_state.has_links) require(kCall, capi::quiet_links(process_state.routes));
  };
  if (is_of_device(kCall, stream)) return call_on_device(kCall, stream, quiet);
  submit_to_host(kCall, stream, quiet);
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_EXPORT void aclshmemx_signal_op_on_stream(int32_t* sig_addr, int32_t signal, int sig_op,
                                                  int pe, aclrtStream stream) try {
  constexpr const char* kCall = "aclshmemx_signal_op_on_stream";
  if (sig_op != ACLSHMEM_SIGNAL_SET && sig_op != ACLSHMEM_SIGNAL_ADD)
    end_for_bad_number(kCall, "sig_op", sig_op, ACLSHMEM_SIGNAL_SET, ACLSHMEM_SIGNAL_ADD);
  if (is_of_device(kCall, stream))
    return signal_on_device(kCall, stream, sig_addr, signal, sig_op, pe);
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
  if (is_of_device(__func__, stream))
    return wait_on_device(__func__, stream, sig_addr, cmp, cmp_val);
  submit_to_host(__func__, stream, [=] { aclshmem_signal_wait_until(sig_addr, cmp, cmp_val); });
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_EXPORT void aclshmemx_barrier_on_stream(aclshmem_team_t team, aclrtStream stream) {
  submit_barrier(__func__, team, stream, [=] { aclshmem_barrier(team); });
}
MEMSPAN_EXPORT void aclshmemx_barrier_all_on_stream(aclrtStream stream) {
  submit_barrier(__func__, ACLSHMEM_TEAM_WORLD, stream, [] { aclshmem_barrier_all(); });
}
MEMSPAN_EXPORT void aclshmemx_handle_wait(aclshmem_handle_t handle, aclrtStream stream) {
  submit_barrier(__func__, handle.team_id, stream, [=] { aclshmem_barrier(handle.team_id); });
}
