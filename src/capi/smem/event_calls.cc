// SPDX-License-Identifier: Apache-2.0
// Events of streams (<memspan/stream.h>).
#include "device/stream.h"

#include <fmt/format.h>
#include <memspan/stream.h>

#include <memory>

#include "capi/smem/fork_aware_singleton.h"
#include "capi/smem/result.h"
#include "capi/smem/stream_table.h"

namespace memspan::capi {
namespace {

using Events = HandleTable<Event, HandleKind::kEvent>;
Events& events() {
  return fork_aware_singleton<Events>();
}

std::int32_t create_event(const char* call, memspan_event_t* event) {
  if (event == nullptr)
    return smem_failure(call, SMEM_INVALID_PARAM, "invalid param, event is NULL");
  void* const handle = events().add(std::make_unique<Event>());
  if (handle == nullptr)
    return smem_failure(call, SMEM_NO_RESOURCES,
                        fmt::format("there are {} events already, the most", Events::kMost));
  *event = handle;
  return SMEM_OK;
}

std::int32_t with_both(const char* call, memspan_event_t event, memspan_stream_t stream,
                       Status (*work)(Event& event, Stream& stream)) {
  auto used = events().use(event);
  if (!used) return bad_handle(call, event, "event");
  auto of = streams().use(stream);
  if (!of) return bad_handle(call, stream, "stream");
  const Status given = work(*used, *of);
  return given.is_ok() ? SMEM_OK : smem_failure(call, SMEM_NO_RESOURCES, given.message());
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t memspan_event_create(memspan_event_t* event) try {
  return create_event("memspan_event_create", event);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_event_destroy(memspan_event_t event) try {
  constexpr const char* kCall = "memspan_event_destroy";
  return events().remove(event) == nullptr ? bad_handle(kCall, event, "event") : SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_event_record(memspan_event_t event, memspan_stream_t stream) try {
  return with_both("memspan_event_record", event, stream,
                   [](Event& its, Stream& of) { return its.record(of); });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_stream_wait_event(memspan_stream_t stream,
                                                 memspan_event_t event) try {
  return with_both("memspan_stream_wait_event", event, stream,
                   [](Event& its, Stream& of) { return its.hold(of); });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_event_query(memspan_event_t event) try {
  auto used = events().use(event);
  if (!used) return bad_handle("memspan_event_query", event, "event");
  return used->is_over() ? SMEM_OK : MEMSPAN_STREAM_BUSY;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_event_synchronize(memspan_event_t event, uint32_t timeout_ms) try {
  constexpr const char* kCall = "memspan_event_synchronize";
  auto used = events().use(event);
  if (!used) return bad_handle(kCall, event, "event");
  return smem_result(kCall, used->synchronize(deadline_of(timeout_ms)));
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)
