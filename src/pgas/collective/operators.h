// SPDX-License-Identifier: Apache-2.0
// The operators of reductions, as functions over arrays that compilers turn into vector code.
#pragma once

#include <cstddef>
#include <type_traits>

#include "pgas/collective/collective.h"

namespace memspan::pgas {

// Arithmetic of small integers is done in the type itself, wrapping; signed overflow wraps too.
template <typename T>
struct Sum {
  static T apply(T a, T b) { return add(a, b); }

 private:
  static T add(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  }
};
template <typename T>
struct Prod {
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      // Through 64 bits without a sign: no promotion to int, no undefined overflow.
      return static_cast<T>(static_cast<unsigned long long>(a) *
                            static_cast<unsigned long long>(b));
    } else {
      return a * b;
    }
  }
};
template <typename T>
struct Min {
  static T apply(T a, T b) { return b < a ? b : a; }
};
template <typename T>
struct Max {
  static T apply(T a, T b) { return a < b ? b : a; }
};
template <typename T>
struct And {
  static T apply(T a, T b) { return static_cast<T>(a & b); }
};
template <typename T>
struct Or {
  static T apply(T a, T b) { return static_cast<T>(a | b); }
};
template <typename T>
struct Xor {
  static T apply(T a, T b) { return static_cast<T>(a ^ b); }
};

template <typename T, template <typename> class Operator>
void combine(void* into, const void* from, std::size_t count) {
  static_assert(sizeof(T) <= kMeetingWords * sizeof(std::uint64_t), "a flag carries an element");
  auto* a = static_cast<T*>(into);
  auto* b = static_cast<const T*>(from);
  for (std::size_t i = 0; i < count; ++i) a[i] = Operator<T>::apply(a[i], b[i]);
}

template <typename T, template <typename> class Operator>
inline constexpr Reduction kReduction{combine<T, Operator>, sizeof(T)};

}  // namespace memspan::pgas
