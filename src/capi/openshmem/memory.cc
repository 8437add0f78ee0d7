// SPDX-License-Identifier: Apache-2.0
// The symmetric heap: collective over all PEs.
#include <bit>
#include <cstring>

#include "capi/access.h"
#include "capi/errors.h"
#include "capi/openshmem/profiling_alias.h"
#include "core/cpu.h"
#include "pgas/collective/collective.h"
#include "pgas/symmetric_memory.h"

namespace memspan::capi {
namespace {

// A cache line, so that two objects (flags, locks) never share one.
constexpr std::size_t kDefaultAlignment = kCacheLine;

void say_why(const char* call, std::string_view reason) {
  log_line(LogLevel::kWarn, std::string(shown_name(call)) + ": " + std::string(reason));
}

// Null for a shortage, which all PEs see, and for a death that the program survives. Any other
// failure ends the process.
void* address_or_null(const char* call, const Result<void*>& result) {
  if (result.is_ok()) return result.value();
  if (result.code() == Code::kOutOfMemory)
    say_why(call, result.status().message());
  else
    fail(call, result.status());
  return nullptr;
}

void* allocate(const char* call, std::size_t bytes, std::size_t alignment) {
  require_started(call);
  if (bytes == 0) return nullptr;
  return address_or_null(call, pgas::allocate(*process_state.world_team, call, bytes, alignment));
}

void free(const char* call, void* pointer) {
  require_started(call);
  if (pointer == nullptr) return;
  require(call, pgas::free(*process_state.world_team, call, pointer));
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_PROFILED(void*, malloc, (size_t size)) try {
  return allocate("shmem_malloc", size, kDefaultAlignment);
}
MEMSPAN_CATCH(nullptr)

// Every byte of the heap can be reached in the same way, so the hints change nothing.
MEMSPAN_PROFILED(void*, malloc_with_hints, (size_t size, [[maybe_unused]] long hints)) try {
  return allocate("shmem_malloc_with_hints", size, kDefaultAlignment);
}
MEMSPAN_CATCH(nullptr)

MEMSPAN_PROFILED(void*, align, (size_t alignment, size_t size)) try {
  if (!std::has_single_bit(alignment)) {
    require_started("shmem_align");
    say_why("shmem_align",
            "alignment is " + std::to_string(alignment) + ", allowed are powers of two");
    return nullptr;
  }
  return allocate("shmem_align", size, std::max(alignment, kDefaultAlignment));
}
MEMSPAN_CATCH(nullptr)

MEMSPAN_PROFILED(void*, calloc, (size_t count, size_t size)) try {
  std::size_t bytes = bytes_of(count, size);
  void* pointer = allocate("shmem_calloc", bytes, kDefaultAlignment);
  if (pointer == nullptr) return nullptr;
  std::memset(pointer, 0, bytes);
  // A peer's put must not come before the zeros.
  const Status met = process_state.world_team->barrier("shmem_calloc");
  return require("shmem_calloc", met) ? pointer : nullptr;
}
MEMSPAN_CATCH(nullptr)

MEMSPAN_PROFILED(void*, realloc, (void* ptr, size_t size)) try {
  if (ptr == nullptr) return allocate("shmem_realloc", size, kDefaultAlignment);
  require_started("shmem_realloc");
  if (size == 0) {
    capi::free("shmem_realloc", ptr);
    return nullptr;
  }
  return address_or_null("shmem_realloc",
                         pgas::reallocate(*process_state.world_team, "shmem_realloc", ptr, size));
}
MEMSPAN_CATCH(nullptr)

MEMSPAN_PROFILED(void, free, (void* ptr)) try { capi::free("shmem_free", ptr); }
MEMSPAN_CATCH_AND_END(__func__)
