// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <complex>
#include <type_traits>

#include "pgas/collective/operators.h"

namespace memspan::pgas {
namespace {

// Without branches, so that compilers make vector code of it.
struct Half {
  using Wide = float;
  std::uint16_t bits;

  static float widen(Half half) {
    const std::uint32_t magnitude = half.bits & 0x7fffU;
    const std::uint32_t sign = (half.bits & 0x8000U) << 16;
    // The exponent's bias is put right by a product, which normalises what was not, too.
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
    const std::uint32_t is_special = magnitude >= 0x7c00U ? 0x7f800000U : 0U;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | is_special | sign);
  }
  static Half narrow(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = all & 0x7fffffffU;
    const std::uint32_t sign = (all >> 16) & 0x8000U;
    const std::uint32_t odd = (magnitude >> 13) & 1U;
    const std::uint32_t normal = (magnitude - (112U << 23) + 0xfffU + odd) >> 13;
    // Adding a half makes the addition round at the last bit that a subnormal has.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
        std::bit_cast<std::uint32_t>(0.5F);
    const std::uint32_t huge = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
    std::uint32_t bits = magnitude < 0x38800000U ? subnormal : normal;
    bits = magnitude >= 0x47800000U ? huge : bits;
    return {static_cast<std::uint16_t>(bits | sign)};
  }
};

struct Bfloat16 {
  using Wide = float;
  std::uint16_t bits;

  static float widen(Bfloat16 half) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(half.bits) << 16);
  }
  static Bfloat16 narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
    const std::uint32_t quiet = bits | 0x400000U;
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return {static_cast<std::uint16_t>((is_nan ? quiet : rounded) >> 16)};
  }
};

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

template <typename T>
struct ComplexProduct {
  // Not operator*, which looks for infinities.
  static std::complex<T> apply(std::complex<T> a, std::complex<T> b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};

// In blocks that stay in the first-level cache; a block's sources are read before it is written.
template <typename Stored, typename Apply, typename Finish>
void combine_all(void* result, const void* const sources[], int members, std::size_t count) {
  using Wide = typename Stored::Wide;
  constexpr std::size_t kBlock = 4096 / sizeof(Wide);
  Wide sums[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t now = std::min(kBlock, count - begin);
    const auto* first = static_cast<const Stored*>(sources[0]) + begin;
    for (std::size_t i = 0; i < now; ++i) sums[i] = Stored::widen(first[i]);
    for (int member = 1; member < members; ++member) {
      const auto* next = static_cast<const Stored*>(sources[member]) + begin;
      for (std::size_t i = 0; i < now; ++i) sums[i] = Apply::apply(sums[i], Stored::widen(next[i]));
    }
    auto* to = static_cast<Stored*>(result) + begin;
    for (std::size_t i = 0; i < now; ++i) to[i] = Stored::narrow(Finish::finish(sums[i], members));
  }
}

constexpr int kOperators = 8;
constexpr int kTypes = 14;
using Row = std::array<Elements::Combine, kOperators>;

template <typename Stored>
constexpr Row numbers() {
  using T = typename Stored::Wide;
  Row row{};
  row[0] = combine_all<Stored, Sum<T>, Keep<T>>;
  row[1] = combine_all<Stored, Prod<T>, Keep<T>>;
  row[2] = combine_all<Stored, Min<T>, Keep<T>>;
  row[3] = combine_all<Stored, Max<T>, Keep<T>>;
  if constexpr (std::is_integral_v<T>) {
    row[4] = combine_all<Stored, And<T>, Keep<T>>;
    row[5] = combine_all<Stored, Or<T>, Keep<T>>;
    row[6] = combine_all<Stored, Xor<T>, Keep<T>>;
  } else {
    row[7] = combine_all<Stored, Sum<T>, Divide<T>>;
  }
  return row;
}

template <typename T>
constexpr Row complex_numbers() {
  using Number = std::complex<T>;
  using Stored = Plain<Number>;
  Row row{};
  row[0] = combine_all<Stored, Sum<Number>, Keep<Number>>;
  row[1] = combine_all<Stored, ComplexProduct<T>, Keep<Number>>;
  row[7] = combine_all<Stored, Sum<Number>, Divide<Number>>;
  return row;
}

struct Type {
  const char* name;
  std::size_t bytes;
  Row operators;
};
constexpr std::array<Type, kTypes> kTable{{
    {"int8", 1, numbers<Plain<std::int8_t>>()},
    {"uint8", 1, numbers<Plain<std::uint8_t>>()},
    {"int16", 2, numbers<Plain<std::int16_t>>()},
    {"uint16", 2, numbers<Plain<std::uint16_t>>()},
    {"int32", 4, numbers<Plain<std::int32_t>>()},
    {"uint32", 4, numbers<Plain<std::uint32_t>>()},
    {"int64", 8, numbers<Plain<std::int64_t>>()},
    {"uint64", 8, numbers<Plain<std::uint64_t>>()},
    {"float16", 2, numbers<Half>()},
    {"bfloat16", 2, numbers<Bfloat16>()},
    {"float32", 4, numbers<Plain<float>>()},
    {"float64", 8, numbers<Plain<double>>()},
    {"complex64", 8, complex_numbers<float>()},
    {"complex128", 16, complex_numbers<double>()},
}};
constexpr std::array<const char*, kOperators> kNames{"sum", "product", "min", "max",
                                                     "and", "or",      "xor", "average"};

}  // namespace

Result<Elements> elements_of(int type, int op) {
  if (type < 0 || type >= kTypes)
    return Status(Code::kInvalidArgument,
                  fmt::format("the type is {}, allowed are 0 to {}", type, kTypes - 1));
  if (op < 0 || op >= kOperators)
    return Status(Code::kInvalidArgument,
                  fmt::format("the operation is {}, allowed are 0 to {}", op, kOperators - 1));
  const Type& row = kTable[static_cast<std::size_t>(type)];
  const Elements::Combine combine = row.operators[static_cast<std::size_t>(op)];
  if (combine == nullptr)
    return Status(
        Code::kInvalidArgument,
        fmt::format("there is no {} of {}", kNames[static_cast<std::size_t>(op)], row.name));
  return Elements{static_cast<ElementType>(type), static_cast<Operator>(op), row.bytes, combine};
}

float float_of_half(std::uint16_t half) {
  return Half::widen({half});
}
std::uint16_t half_of_float(float value) {
  return Half::narrow(value).bits;
}
float float_of_bfloat16(std::uint16_t half) {
  return Bfloat16::widen({half});
}
std::uint16_t bfloat16_of_float(float value) {
  return Bfloat16::narrow(value).bits;
}

}  // namespace memspan::pgas
