// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <memspan/stream.h>

#include <memory>

#include "capi/smem/fork_aware_singleton.h"
#include "capi/smem/result.h"
#include "capi/smem/stream_table.h"
#include "device/choice.h"
#include "device/host/copy.h"

namespace memspan::capi {

Streams& streams() {
  return fork_aware_singleton<Streams>();
}

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

constexpr const char* kWhat = "stream";

std::int32_t create_stream(const char* call, memspan_stream_t* stream) {
  if (stream == nullptr)
    return smem_failure(call, SMEM_INVALID_PARAM, "invalid param, stream is NULL");
  void* handle = streams().add(std::make_unique<Stream>());
  if (handle == nullptr)
    return smem_failure(call, SMEM_NO_RESOURCES,
                        fmt::format("there are {} streams already, the most", Streams::kMost));
  *stream = handle;
  return SMEM_OK;
}

std::int32_t destroy_stream(const char* call, memspan_stream_t stream) {
  if (stream != nullptr && stream == default_stream())
    return smem_failure(call, SMEM_INVALID_PARAM,
                        "invalid param, the default stream cannot be destroyed");
  {
    auto used = streams().use(stream);
    if (!used) return bad_handle(call, stream, kWhat);
    if (used->is_own_work())
      return smem_failure(call, SMEM_INVALID_PARAM,
                          "invalid param, the stream cannot be destroyed by its own work");
  }
  if (streams().remove(stream) == nullptr) return bad_handle(call, stream, kWhat);
  return SMEM_OK;
}

std::int32_t query(const char* call, memspan_stream_t stream) {
  auto used = streams().use(stream);
  if (!used) return bad_handle(call, stream, kWhat);
  return used->is_idle() ? SMEM_OK : MEMSPAN_STREAM_BUSY;
}

std::int32_t synchronize(const char* call, memspan_stream_t stream, std::uint32_t timeout_ms) {
  auto used = streams().use(stream);
  if (!used) return bad_handle(call, stream, kWhat);
  return smem_result(call, used->synchronize(deadline_of(timeout_ms)));
}

std::int32_t give(const char* call, memspan_stream_t stream, std::int32_t (*function)(void*),
                  void* context) {
  if (function == nullptr)
    return smem_failure(call, SMEM_INVALID_PARAM, "invalid param, function is NULL");
  auto used = streams().use(stream);
  if (!used) return bad_handle(call, stream, kWhat);
  const Status given = used->submit([function, context] {
    const std::int32_t code = function(context);
    return code == 0
               ? Status::ok()
               : Status(Code::kSystem, fmt::format("a function of the stream returned {}", code));
  });
  if (given.is_ok()) return SMEM_OK;
  return smem_failure(call, SMEM_NO_RESOURCES, given.message());
}

std::int32_t copy(const char* call, memspan_stream_t stream, void* dest, const void* source,
                  std::size_t bytes) {
  if (bytes != 0 && (dest == nullptr || source == nullptr))
    return smem_failure(call, SMEM_INVALID_PARAM, "invalid param, dest or source is NULL");
  auto used = streams().use(stream);
  if (!used) return bad_handle(call, stream, kWhat);
  const Status given = used->submit([=, device = other_device()] {
    const bool is_plain = device == nullptr || !(device->owns(dest) || device->owns(source));
    if (!is_plain) return device->copy(dest, source, bytes);
    copy_bytes(dest, source, bytes);
    return Status::ok();
  });
  if (given.is_ok()) return SMEM_OK;
  return smem_failure(call, SMEM_NO_RESOURCES, given.message());
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;

MEMSPAN_EXPORT int32_t memspan_stream_create(memspan_stream_t* stream) try {
  return create_stream("memspan_stream_create", stream);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT memspan_stream_t memspan_stream_default(void) try { return default_stream(); }
MEMSPAN_CATCH(nullptr)
MEMSPAN_EXPORT int32_t memspan_stream_destroy(memspan_stream_t stream) try {
  return destroy_stream("memspan_stream_destroy", stream);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_stream_query(memspan_stream_t stream) try {
  return query("memspan_stream_query", stream);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_stream_synchronize(memspan_stream_t stream,
                                                  uint32_t timeout_ms) try {
  return synchronize("memspan_stream_synchronize", stream, timeout_ms);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_stream_call(memspan_stream_t stream,
                                           int32_t (*function)(void* context), void* context) try {
  return give("memspan_stream_call", stream, function, context);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_stream_copy(memspan_stream_t stream, void* dest, const void* source,
                                           size_t bytes) try {
  return copy("memspan_stream_copy", stream, dest, source, bytes);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)
