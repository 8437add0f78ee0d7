// SPDX-License-Identifier: Apache-2.0
#include "device/host/copy.h"

#include "core/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#endif

namespace memspan {

#if defined(__x86_64__)
namespace {

constexpr std::size_t kStep = 2 * kCacheLine;
static_assert(kLargeCopyBytes >= kCacheLine + kStep);

struct Step {
  __m256i vectors[4];
};

// All loads of a step come before its stores, so that their misses overlap.
__attribute__((target("avx2"))) inline Step load(const std::byte* from) {
  const auto* vectors = reinterpret_cast<const __m256i*>(from);
  return {{_mm256_loadu_si256(vectors), _mm256_loadu_si256(vectors + 1),
           _mm256_loadu_si256(vectors + 2), _mm256_loadu_si256(vectors + 3)}};
}

// The target of a step's stores: any address, an aligned one, or an aligned one past the caches.
enum class Place { kAny, kWhole, kPastCaches };

template <Place place>
__attribute__((target("avx2"))) inline void store(__m256i* to, __m256i vector) {
  if constexpr (place == Place::kAny) _mm256_storeu_si256(to, vector);
  if constexpr (place == Place::kWhole) _mm256_store_si256(to, vector);
  if constexpr (place == Place::kPastCaches) _mm256_stream_si256(to, vector);
}

template <Place place>
__attribute__((target("avx2"))) inline void store(std::byte* to, const Step& step) {
  auto* vectors = reinterpret_cast<__m256i*>(to);
  store<place>(vectors, step.vectors[0]);
  store<place>(vectors + 1, step.vectors[1]);
  store<place>(vectors + 2, step.vectors[2]);
  store<place>(vectors + 3, step.vectors[3]);
}

// How far ahead of its loads a copy prefetches the source. Bytes from memory at 20 GB/s and more
// take 100 ns, which is 2 KiB of them. Bytes from the last cache take a quarter of that. The
// processor's own prefetchers stop at the end of each page of 4 KiB.
constexpr std::size_t kNotAhead = 0;
constexpr std::size_t kCacheAhead = 512;
constexpr std::size_t kMemoryAhead = 2048;

// A copy past the caches must not fill them with its source either.
template <Place place>
inline void ask_for(const std::byte* from) {
  constexpr int kInto = place == Place::kPastCaches ? 0 : 3;  // non-temporal, or all caches
  __builtin_prefetch(from, 0, kInto);
  __builtin_prefetch(from + kCacheLine, 0, kInto);
}

// Stores whole lines of `to`, except in the last step, and in the first if `to` does not begin a
// line. If steps overlap, the same bytes are written twice.
template <Place place, std::size_t ahead>
__attribute__((target("avx2"))) void copy_in_steps(std::byte* to, const std::byte* from,
                                                   std::size_t bytes) {
  const std::byte* const last = from + bytes - kStep;
  std::byte* const last_to = to + bytes - kStep;
  if (const auto before = reinterpret_cast<std::uintptr_t>(to) % kCacheLine; before != 0) {
    store<Place::kAny>(to, load(from));
    from += kCacheLine - before;
    to += kCacheLine - before;
  }
  if constexpr (ahead != kNotAhead)
    for (; from + ahead < last; from += kStep, to += kStep) {
      ask_for<place>(from + ahead);
      store<place>(to, load(from));
    }
  for (; from < last; from += kStep, to += kStep) store<place>(to, load(from));
  store<Place::kAny>(last_to, load(last));
}

// Like copy_in_steps(), with four vectors of a whole line each: the processor need not read a line
// that is written whole.
struct WideStep {
  __m512i vectors[4];
};

__attribute__((target("avx512f"))) inline WideStep load_wide(const std::byte* from) {
  return {{_mm512_loadu_si512(from), _mm512_loadu_si512(from + kCacheLine),
           _mm512_loadu_si512(from + 2 * kCacheLine), _mm512_loadu_si512(from + 3 * kCacheLine)}};
}

__attribute__((target("avx512f"))) inline void store_wide(std::byte* to, const WideStep& step) {
  _mm512_storeu_si512(to, step.vectors[0]);
  _mm512_storeu_si512(to + kCacheLine, step.vectors[1]);
  _mm512_storeu_si512(to + 2 * kCacheLine, step.vectors[2]);
  _mm512_storeu_si512(to + 3 * kCacheLine, step.vectors[3]);
}

__attribute__((target("avx512f"))) void copy_in_wide_steps(std::byte* to, const std::byte* from,
                                                           std::size_t bytes) {
  const std::byte* const last = from + bytes - sizeof(WideStep);
  std::byte* const last_to = to + bytes - sizeof(WideStep);
  if (const auto before = reinterpret_cast<std::uintptr_t>(to) % kCacheLine; before != 0) {
    store_wide(to, load_wide(from));
    from += kCacheLine - before;
    to += kCacheLine - before;
  }
  for (; from < last; from += sizeof(WideStep), to += sizeof(WideStep))
    store_wide(to, load_wide(from));
  store_wide(last_to, load_wide(last));
}

struct Machine {
  bool has_vectors = false;
  bool has_wide_vectors = false;
  // From this size on neither end of a copy fits a core's own caches: at most past_caches.
  std::size_t beyond_core = SIZE_MAX;
  // From this size on no cache holds both ends of a copy, and a plain store would read the line
  // that it overwrites.
  std::size_t past_caches = SIZE_MAX;
};

// As the processor says it; the C library's own figures are wrong on some. 0: it does not.
struct CacheSizes {
  std::size_t of_core = 0;  // the second level
  std::size_t largest = 0;
};

CacheSizes cache_sizes() {
  constexpr unsigned kIntel = 4;  // the leaves have the same form
  constexpr unsigned kAmd = 0x8000001d;
  const unsigned leaf =
      static_cast<unsigned>(__get_cpuid_max(0x80000000, nullptr)) >= kAmd ? kAmd : kIntel;
  CacheSizes sizes;
  unsigned a = 0, b = 0, sets = 0, d = 0;
  for (unsigned i = 0; __get_cpuid_count(leaf, i, &a, &b, &sets, &d) != 0 && (a & 0x1f) != 0; ++i) {
    const std::size_t line = (b & 0xfff) + 1;
    const std::size_t partitions = (b >> 12 & 0x3ff) + 1;
    const std::size_t ways = (b >> 22) + 1;
    const std::size_t bytes = line * partitions * ways * (std::size_t{sets} + 1);
    if ((a >> 5 & 7) == 2) sizes.of_core = std::max(sizes.of_core, bytes);
    sizes.largest = std::max(sizes.largest, bytes);
  }
  return sizes;
}

Machine look_at_machine() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") == 0) return {};
  const CacheSizes cache = cache_sizes();
  Machine machine{.has_vectors = true};
  // Processors that lower their clock for vectors of 64 bytes are those without VBMI2.
  machine.has_wide_vectors =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vbmi2") != 0;
  if (cache.largest > 0) machine.past_caches = cache.largest / 2;
  if (cache.of_core > 0) machine.beyond_core = 2 * cache.of_core;
  machine.beyond_core = std::min(machine.beyond_core, machine.past_caches);
  return machine;
}

const Machine& this_machine() {
  static const Machine machine = look_at_machine();
  return machine;
}

// Stores past the caches are ordered with no other but by the fences.
void copy_in_order_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) {
  _mm_sfence();
  copy_in_steps<Place::kPastCaches, kMemoryAhead>(to, from, bytes);
  _mm_sfence();
}

}  // namespace

std::size_t copies_past_caches_from() {
  return this_machine().past_caches;
}

void copy_large(void* to, const void* from, std::size_t bytes) {
  const Machine& machine = this_machine();
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  if (!machine.has_vectors)
    std::memcpy(to, from, bytes);
  else if (bytes < machine.beyond_core)
    copy_in_steps<Place::kWhole, kNotAhead>(target, source, bytes);
  else if (bytes >= machine.past_caches)
    copy_in_order_past_caches(target, source, bytes);
  else if (machine.has_wide_vectors)
    copy_in_wide_steps(target, source, bytes);
  else
    copy_in_steps<Place::kWhole, kCacheAhead>(target, source, bytes);
}

void copy_past_caches(void* to, const void* from, std::size_t bytes) {
  if (bytes < kLargeCopyBytes || !this_machine().has_vectors)
    std::memcpy(to, from, bytes);
  else
    copy_in_steps<Place::kPastCaches, kMemoryAhead>(static_cast<std::byte*>(to),
                                                    static_cast<const std::byte*>(from), bytes);
}

void order_copies_past_caches() {
  _mm_sfence();
}

#else

std::size_t copies_past_caches_from() {
  return SIZE_MAX;
}

void copy_large(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void copy_past_caches(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void order_copies_past_caches() {}

#endif

}  // namespace memspan
