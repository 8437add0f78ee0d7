// SPDX-License-Identifier: Apache-2.0
// The operations of reductions on two values of one type.
#pragma once

#include <complex>
#include <type_traits>

namespace memspan::pgas {

// Arithmetic of small integers is done in the type itself, wrapping; signed overflow also wraps.
template <typename T>
struct Sum {
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  }
};
template <typename T>
struct Product {
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
// Not operator*, which looks for infinities.
template <typename T>
struct Product<std::complex<T>> {
  static std::complex<T> apply(std::complex<T> a, std::complex<T> b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
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

}  // namespace memspan::pgas
