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

// What a step is stored to: any place, one that begins a vector, or such a one past the caches.
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

// Whole lines of `to`, but for the first step, where `to` does not begin one, and the last; where
// steps overlap, the same bytes are written twice.
template <Place place>
__attribute__((target("avx2"))) void copy_in_steps(std::byte* to, const std::byte* from,
                                                   std::size_t bytes) {
  const std::byte* const last = from + bytes - kStep;
  std::byte* const last_to = to + bytes - kStep;
  if (const auto before = reinterpret_cast<std::uintptr_t>(to) % kCacheLine; before != 0) {
    store<Place::kAny>(to, load(from));
    from += kCacheLine - before;
    to += kCacheLine - before;
  }
  for (; from < last; from += kStep, to += kStep) store<place>(to, load(from));
  store<Place::kAny>(last_to, load(last));
}

struct Machine {
  bool has_vectors = false;
  // From so many bytes on no cache holds both ends of a copy, and a plain store would read the line
  // that it is going to overwrite.
  std::size_t past_caches = SIZE_MAX;
};

// Of the largest cache, as the processor says it; the C library's own figure is wrong on some.
std::size_t largest_cache() {
  constexpr unsigned kIntel = 4;  // the leaves have the same form
  constexpr unsigned kAmd = 0x8000001d;
  const unsigned leaf =
      static_cast<unsigned>(__get_cpuid_max(0x80000000, nullptr)) >= kAmd ? kAmd : kIntel;
  std::size_t largest = 0;
  unsigned a = 0, b = 0, sets = 0, d = 0;
  for (unsigned i = 0; __get_cpuid_count(leaf, i, &a, &b, &sets, &d) != 0 && (a & 0x1f) != 0; ++i) {
    const std::size_t line = (b & 0xfff) + 1;
    const std::size_t partitions = (b >> 12 & 0x3ff) + 1;
    const std::size_t ways = (b >> 22) + 1;
    largest = std::max(largest, line * partitions * ways * (std::size_t{sets} + 1));
  }
  return largest;
}

Machine look_at_machine() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") == 0) return {};
  const std::size_t cache = largest_cache();
  return {true, cache > 0 ? cache / 2 : SIZE_MAX};
}

const Machine& this_machine() {
  static const Machine machine = look_at_machine();
  return machine;
}

// Stores past the caches are ordered with no other but by the fences.
void copy_in_order_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) {
  _mm_sfence();
  copy_in_steps<Place::kPastCaches>(to, from, bytes);
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
  else if (bytes < machine.past_caches)
    copy_in_steps<Place::kWhole>(target, source, bytes);
  else
    copy_in_order_past_caches(target, source, bytes);
}

void copy_past_caches(void* to, const void* from, std::size_t bytes) {
  if (bytes < kLargeCopyBytes || !this_machine().has_vectors)
    std::memcpy(to, from, bytes);
  else
    copy_in_steps<Place::kPastCaches>(static_cast<std::byte*>(to),
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
