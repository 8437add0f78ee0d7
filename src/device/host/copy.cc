// SPDX-License-Identifier: Apache-2.0
#include "device/host/copy.h"

#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace memspan {
namespace {

// Sizes for which the processor's string copy beats memcpy: where source and target are more than
// the second-level cache but far less than the third. Empty where the processor does not say that
// its string copy is fast (ERMS), or we do not know its caches.
struct Range {
  std::size_t least = SIZE_MAX;
  std::size_t most = 0;
};

#if defined(__x86_64__)
Range string_copy_range() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kErms = 1U << 9;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (b & kErms) == 0) return {};
  const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (cache <= 0) return {};
  return {static_cast<std::size_t>(cache), 4 * static_cast<std::size_t>(cache)};
}

void string_copy(void* to, const void* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}
#else
Range string_copy_range() {
  return {};
}

void string_copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif

}  // namespace

void copy_large(void* to, const void* from, std::size_t bytes) {
  static const Range range = string_copy_range();
  if (bytes >= range.least && bytes <= range.most)
    string_copy(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

}  // namespace memspan
