// SPDX-License-Identifier: Apache-2.0
// Streams, their events and kernel launches (<memspan/stream.h>).
#include <fmt/format.h>
#include <memspan/stream.h>

#include "capi/smem/result.h"
#include "capi/smem/stream_table.h"
#include "device/choice.h"
#include "device/host/copy.h"
#include "device/host/grid.h"
#include "device/stream.h"

namespace memspan::capi {

memspan_stream_t default_stream() {
  struct Default {
    memspan_stream_t handle = streams().add(std::make_unique<Stream>());
  };
  return fork_aware_singleton<Default>().handle;
}

bool may_be_of_device(const void* stream) {
  constexpr int kAddressBits = 48;
  return reinterpret_cast<std::uintptr_t>(stream) >> kAddressBits == 0 && other_device() != nullptr;
}

namespace {

using Events = HandleTable<Event, HandleKind::kEvent>;
constexpr auto& events = fork_aware_singleton<Events>;

// The code of work that a stream was given.
std::int32_t given(const char* call, const Status& status) {
  return status.is_ok() ? SMEM_OK : smem_failure(call, SMEM_NO_RESOURCES, status.message());
}

std::int32_t with_both(const char* call, memspan_event_t event, memspan_stream_t stream,
                       Status (*work)(Event& event, Stream& stream)) {
  return with<Events>(call, event, [&](Event& its) {
    return with<Streams>(call, stream, [&](Stream& of) { return given(call, work(its, of)); });
  });
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t memspan_stream_create(memspan_stream_t* stream) try {
  if (stream == nullptr) return smem_result(__func__, null_argument("stream"));
  return add_object(__func__, streams(), std::make_unique<Stream>(), stream);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT memspan_stream_t memspan_stream_default(void) try { return default_stream(); }
MEMSPAN_CATCH(nullptr)

MEMSPAN_EXPORT int32_t memspan_stream_destroy(memspan_stream_t stream) try {
  if (stream != nullptr && stream == default_stream())
    return smem_result(__func__, invalid("invalid param, the default stream cannot be destroyed"));
  const std::int32_t code = with<Streams>(__func__, stream, [](Stream& used) {
    return used.is_own_work()
               ? invalid("invalid param, the stream cannot be destroyed by its own work")
               : Status::ok();
  });
  if (code != SMEM_OK) return code;
  return streams().remove(stream) == nullptr ? bad_handle(__func__, stream, "stream") : SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_stream_query(memspan_stream_t stream) {
  return with<Streams>(__func__, stream, [](Stream& used) {
    return std::int32_t{used.is_idle() ? SMEM_OK : MEMSPAN_STREAM_BUSY};
  });
}

MEMSPAN_EXPORT int32_t memspan_stream_synchronize(memspan_stream_t stream, uint32_t timeout_ms) {
  return with<Streams>(__func__, stream,
                       [&](Stream& used) { return used.synchronize(deadline_of(timeout_ms)); });
}

MEMSPAN_EXPORT int32_t memspan_stream_call(memspan_stream_t stream,
                                           int32_t (*function)(void* context), void* context) try {
  const char* const call = __func__;
  if (function == nullptr) return smem_result(call, null_argument("function"));
  return with<Streams>(call, stream, [&](Stream& used) {
    return given(call, used.submit([function, context] {
      const std::int32_t code = function(context);
      return code == 0
                 ? Status::ok()
                 : Status(Code::kSystem, fmt::format("a function of the stream returned {}", code));
    }));
  });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_stream_copy(memspan_stream_t stream, void* dest, const void* source,
                                           size_t bytes) try {
  const char* const call = __func__;
  if (bytes != 0 && (dest == nullptr || source == nullptr))
    return smem_result(call, null_argument("dest or source"));
  return with<Streams>(call, stream, [&](Stream& used) {
    return given(call, used.submit([=, device = other_device()] {
      const bool is_plain = device == nullptr || !(device->owns(dest) || device->owns(source));
      if (!is_plain) return device->copy(dest, source, bytes);
      copy_bytes(dest, source, bytes);
      return Status::ok();
    }));
  });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_event_create(memspan_event_t* event) try {
  if (event == nullptr) return smem_result(__func__, null_argument("event"));
  return add_object(__func__, events(), std::make_unique<Event>(), event);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_event_destroy(memspan_event_t event) try {
  return events().remove(event) == nullptr ? bad_handle(__func__, event, "event") : SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_event_record(memspan_event_t event, memspan_stream_t stream) {
  return with_both(__func__, event, stream, [](Event& its, Stream& of) { return its.record(of); });
}

MEMSPAN_EXPORT int32_t memspan_stream_wait_event(memspan_stream_t stream, memspan_event_t event) {
  return with_both(__func__, event, stream, [](Event& its, Stream& of) { return its.hold(of); });
}

MEMSPAN_EXPORT int32_t memspan_event_query(memspan_event_t event) {
  return with<Events>(__func__, event, [](Event& used) {
    return std::int32_t{used.is_over() ? SMEM_OK : MEMSPAN_STREAM_BUSY};
  });
}

MEMSPAN_EXPORT int32_t memspan_event_synchronize(memspan_event_t event, uint32_t timeout_ms) {
  return with<Events>(__func__, event,
                      [&](Event& used) { return used.synchronize(deadline_of(timeout_ms)); });
}

// ---- kernels

MEMSPAN_EXPORT int32_t memspan_stream_launch(memspan_stream_t stream, unsigned blocks,
                                             void (*kernel)(void* arguments), void* arguments,
                                             void (*release)(void* arguments)) try {
  const char* const call = __func__;
  // Given back when the launch is over or was not begun.
  std::shared_ptr<void> passed(arguments, [release](void* of_kernel) {
    if (release != nullptr) release(of_kernel);
  });
  if (kernel == nullptr) return smem_result(call, null_argument("kernel"));
  if (blocks == 0 || blocks > BlockThreads::kMostBlocks)
    return smem_result(call, invalid("invalid param, {} blocks; allowed are 1 to {}", blocks,
                                     BlockThreads::kMostBlocks));
  return with<Streams>(call, stream, [&](Stream& used) {
    return given(call, used.submit([passed = std::move(passed), kernel, blocks] {
      return fork_aware_singleton<BlockThreads>().run(blocks,
                                                      [&](unsigned) { kernel(passed.get()); });
    }));
  });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)
