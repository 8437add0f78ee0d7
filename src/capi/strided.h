// SPDX-License-Identifier: Apache-2.0
// Strided put and get as the API bindings have them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capi/access.h"
#include "observe/recorded_call.h"
#include "pgas/rma.h"

namespace memspan::capi {

using pgas::Strides;

// The bytes that the symmetric side of a strided access touches, first to last.
struct Extent {
  const void* first;
  std::size_t bytes;  // saturated, so that an overflow is found to be out of range
};

inline Extent extent_of(const void* address, std::ptrdiff_t stride, const Strides& strides,
                        std::size_t element_bytes) {
  const std::size_t step =
      stride < 0 ? -static_cast<std::size_t>(stride) : static_cast<std::size_t>(stride);
  const std::size_t block = bytes_of(strides.block, element_bytes);
  const std::size_t bytes = span_of(strides.count, bytes_of(step, element_bytes), block);
  const auto first = reinterpret_cast<std::uintptr_t>(address) - (stride < 0 ? bytes - block : 0);
  return {reinterpret_cast<const void*>(first), bytes};
}

inline bool is_empty(const Strides& strides) {
  return strides.count == 0 || strides.block == 0;
}

inline std::size_t moved_bytes(const Strides& strides, std::size_t element_bytes) {
  return bytes_of(bytes_of(strides.count, strides.block), element_bytes);
}

inline void put_strided(const char* call, void* dest, const void* source, const Strides& strides,
                        std::size_t element_bytes, int pe,
                        ContextNumber context = kDefaultContext) try {
  if (is_empty(strides)) return require_started(call);
  RecordedCall recorded(CallKind::kPut, call, pe, moved_bytes(strides, element_bytes));
  Extent extent = extent_of(dest, strides.dest, strides, element_bytes);
  const Route& route = reach(call, "dest", extent.first, extent.bytes, pe);
  require_not_null(call, "source", source);
  require(call, recorded.ends(pgas::put_strided(routes_of(context), route, dest, source, strides,
                                                element_bytes)));
}
MEMSPAN_CATCH_AND_END(call)

inline void get_strided(const char* call, void* dest, const void* source, const Strides& strides,
                        std::size_t element_bytes, int pe,
                        ContextNumber context = kDefaultContext) try {
  if (is_empty(strides)) return require_started(call);
  RecordedCall recorded(CallKind::kGet, call, pe, moved_bytes(strides, element_bytes));
  Extent extent = extent_of(source, strides.source, strides, element_bytes);
  const Route& route = reach(call, "source", extent.first, extent.bytes, pe);
  require_not_null(call, "dest", dest);
  require(call, recorded.ends(pgas::get_strided(routes_of(context), route, dest, source, strides,
                                                element_bytes)));
}
MEMSPAN_CATCH_AND_END(call)

}  // namespace memspan::capi
