// SPDX-License-Identifier: Apache-2.0
// The reduction kernels of kernels.cc: how elements of a type are loaded, combined by an operator
// of operators.h, and stored. Floating-point types also have code for wider vectors.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <type_traits>

#include "pgas/reduction/operators.h"

namespace memspan::pgas {

// A type that is computed in itself.
template <typename T>
struct Plain {
  using Wide = T;
  T value;
  static T widen(Plain plain) { return plain.value; }
  static Plain narrow(T value) { return {value}; }
};

template <typename T>
struct Keep {
  static T finish(T sum, int) { return sum; }
};
template <typename T>
struct Divide {
  static T finish(T sum, int members) {
    if constexpr (std::is_arithmetic_v<T>)
      return sum / static_cast<T>(members);
    else
      return sum / static_cast<typename T::value_type>(members);
  }
};

// An element depends on the sources' elements at its own index, also where a source is the result.
#ifdef __clang__
#define MEMSPAN_VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define MEMSPAN_VECTOR_LOOP _Pragma("GCC ivdep")
#endif

constexpr std::size_t kBlockBytes = 4096;  // three of them stay in the first-level cache

// In blocks. Each pass over a block reads one more source, and the last one writes the result.
template <typename Stored, typename Apply, typename Finish>
[[gnu::always_inline]] inline void combine_all(void* result, const void* const sources[],
                                               int members, std::size_t count) {
  using Wide = typename Stored::Wide;
  constexpr std::size_t kBlock = kBlockBytes / sizeof(Wide);
  Wide sums[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t now = std::min(kBlock, count - begin);
    const auto source = [&](int member) {
      return static_cast<const Stored*>(sources[member]) + begin;
    };
    const Stored* const first = source(0);
    const Stored* const last = source(members - 1);
    auto* const to = static_cast<Stored*>(result) + begin;
    const auto store = [&](std::size_t i, Wide sum) {
      to[i] = Stored::narrow(Finish::finish(sum, members));
    };
    if (members == 1) {
      MEMSPAN_VECTOR_LOOP
      for (std::size_t i = 0; i < now; ++i) store(i, Stored::widen(first[i]));
      continue;
    }
    if (members == 2) {
      MEMSPAN_VECTOR_LOOP
      for (std::size_t i = 0; i < now; ++i)
        store(i, Apply::apply(Stored::widen(first[i]), Stored::widen(last[i])));
      continue;
    }
    const Stored* const second = source(1);
    for (std::size_t i = 0; i < now; ++i)
      sums[i] = Apply::apply(Stored::widen(first[i]), Stored::widen(second[i]));
    for (int member = 2; member < members - 1; ++member) {
      const Stored* const next = source(member);
      for (std::size_t i = 0; i < now; ++i) sums[i] = Apply::apply(sums[i], Stored::widen(next[i]));
    }
    MEMSPAN_VECTOR_LOOP
    for (std::size_t i = 0; i < now; ++i) store(i, Apply::apply(sums[i], Stored::widen(last[i])));
  }
}

// into[i] = into[i] op from[i].
template <typename T, typename Apply>
void accumulate(void* into, const void* from, std::size_t count) {
  auto* const sums = static_cast<T*>(into);
  const auto* const terms = static_cast<const T*>(from);
  for (std::size_t i = 0; i < count; ++i) sums[i] = Apply::apply(sums[i], terms[i]);
}

#ifdef __x86_64__
#define MEMSPAN_TARGET(...) __attribute__((target(__VA_ARGS__)))

#else
#define MEMSPAN_TARGET(...)
#endif

// combine_all() for each instruction set.
template <typename Stored, typename Apply, typename Finish>
struct Kernel {
  static void baseline(void* result, const void* const sources[], int members, std::size_t count) {
    combine_all<Stored, Apply, Finish>(result, sources, members, count);
  }
  MEMSPAN_TARGET("avx2")
  static void avx2(void* result, const void* const sources[], int members, std::size_t count) {
    combine_all<Stored, Apply, Finish>(result, sources, members, count);
  }
  MEMSPAN_TARGET("avx512f,avx512bw,avx512vl,avx512dq")
  static void avx512(void* result, const void* const sources[], int members, std::size_t count) {
    combine_all<Stored, Apply, Finish>(result, sources, members, count);
  }
};

}  // namespace memspan::pgas
