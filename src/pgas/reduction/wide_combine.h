// SPDX-License-Identifier: Apache-2.0
// The loops of wide_kernels.h, over the types of narrow_floats.h in vectors: as many elements as
// two vectors of floats have, in whatever order. `Set` has the vectors of an instruction set and
// the steps that depend on it, all inlined:
//
//   Float, Bits        a vector of floats, and its bits
//   add_bit            adds one where that bit is set
//   subtract_if_less   a - b where the value is less than the limit, without a sign
//   where_equal16      that value where the halves are equal, else 0
//   has_nan            whether one of the numbers is a NaN; replace_nans: puts other bits there
//   join_upper         the upper halves of the even elements and of the odd ones
//   store_bytes        the 8-bit types' magnitudes, with the values' signs
#pragma once

#include <cstddef>
#include <cstdint>

#include "pgas/reduction/narrow_floats.h"
#include "pgas/reduction/wide_kernels.h"

namespace memspan::inline pgas {

template <typename Set>
struct WideTypes : Set {
  using Float = typename Set::Float;
  using Bits = typename Set::Bits;
  struct Floats {
    Float first, second;
  };

  static Floats add(Floats a, Floats b) { return {a.first + b.first, a.second + b.second}; }
  static Floats multiply(Floats a, Floats b) { return {a.first * b.first, a.second * b.second}; }
  static Floats divide(Floats a, float b) { return {a.first / b, a.second / b}; }
  // If they are equal, or one is a NaN: `a`, which is the second for the instruction.
  static Floats min(Floats a, Floats b) {
    return {Set::min(b.first, a.first), Set::min(b.second, a.second)};
  }
  static Floats max(Floats a, Floats b) {
    return {Set::max(b.first, a.first), Set::max(b.second, a.second)};
  }

  // From memory twice: to take a vector apart costs a shuffle.
  static Floats load(const Half* from) {
    return {Set::load_halves(from), Set::load_halves(from + Set::kLanes / 2)};
  }
  static void store(Half* to, Floats values) {
    Set::store_halves(to, values.first);
    Set::store_halves(to + Set::kLanes / 2, values.second);
  }

  // Even elements and odd ones: no shuffle is needed to widen.
  static Floats load(const Bfloat16* from) {
    const Bits both = Set::load(from);
    return {floats(Set::left32(both, 16)), floats(both & Set::set32(~0xffff))};
  }
  static void store(Bfloat16* to, Floats values) {
    if (Set::narrow_by_instruction(to, values.first, values.second)) [[likely]]
      return;
    Bits even = rounded_to_upper(values.first);
    Bits odd = rounded_to_upper(values.second);
    if (Set::has_nan(values.first, values.second)) [[unlikely]] {
      even = Set::replace_nans(even, values.first, bits(values.first) | Set::set32(kFloatQuiet));
      odd = Set::replace_nans(odd, values.second, bits(values.second) | Set::set32(kFloatQuiet));
    }
    Set::store(to, Set::join_upper(even, odd));
  }

  static Floats load(const Float8E5m2* from) {
    return widen_halves(Set::left16(Set::load_bytes(from), 8));
  }
  static void store(Float8E5m2* to, Floats values) {
    constexpr int kInfinity = 0x7c;
    store_bytes<5, 2>(to, values, kInfinity);
  }

  // Through float16, whose exponent's bias is greater by 8 and has one bit more.
  static Floats load(const Float8E4m3fn* from) {
    constexpr auto kSignAndMagnitude = static_cast<short>(0xbf80);
    const Bits numbers = Set::left16(Set::load_bytes(from), 7) & Set::set16(kSignAndMagnitude);
    const Bits magnitude = Set::set16(kSignAndMagnitude & 0x7fff);
    const Floats halves =
        widen_halves(numbers | Set::where_equal16(numbers & magnitude, magnitude, 0x7c00));
    return {halves.first * 256.0F, halves.second * 256.0F};
  }
  static void store(Float8E4m3fn* to, Floats values) {
    constexpr int kGreatest = 0x7e;
    store_bytes<4, 3>(to, values, kGreatest);
  }

 private:
  static Float floats(Bits value) { return reinterpret_cast<Float>(value); }
  static Bits bits(Float value) { return reinterpret_cast<Bits>(value); }
  static Floats widen_halves(Bits halves) {
    return {Set::widen_lower(halves), Set::widen_upper(halves)};
  }
  // Bfloat16::narrow(), whose result is in the upper half.
  static Bits rounded_to_upper(Float value) {
    return Set::add_bit(Set::add32(bits(value), Set::set32(0x7fff)), bits(value), 16);
  }
  // NarrowMagnitude::narrow().
  template <typename Magnitude>
  static Bits narrow_magnitude(Float value) {
    const Bits magnitude = bits(value) & Set::set32(kFloatMagnitude);
    const Bits sum = Set::add32(magnitude, Set::set32(Magnitude::kToRound));
    const Bits normal =
        Set::right32(Set::add_bit(sum, magnitude, Magnitude::kShift), Magnitude::kShift);
    const Bits rounds = Set::set32(Magnitude::kRounds);
    return Set::subtract_if_less(normal, magnitude, Magnitude::kLeastNormal,
                                 bits(floats(magnitude) + floats(rounds)), rounds);
  }
  // Stores the values of an 8-bit type, whose magnitudes are at most `greatest`, or the NaN.
  template <int kExponentBits, int kMantissaBits>
  static void store_bytes(void* to, Floats values, int greatest) {
    const auto narrow = [&](Float value) {
      using Magnitude = NarrowMagnitude<kExponentBits, kMantissaBits>;
      return Set::replace_nans(Set::min32(narrow_magnitude<Magnitude>(value), Set::set32(greatest)),
                               value, Set::set32(0x7f));
    };
    Set::store_bytes(to, values.first, narrow(values.first), values.second, narrow(values.second));
  }
};

// The elements behind the last whole vector pass through one of their own, with unused numbers
// behind them.
template <typename Stored, typename Vectors, typename Apply, typename Finish>
[[gnu::noinline]] void combine_rest(Stored* result, const void* const sources[], int members,
                                    std::size_t begin, std::size_t count, Apply apply,
                                    Finish finish) {
  alignas(64) std::byte place[Vectors::kLanes * sizeof(std::uint16_t)] = {};
  auto* const rest = reinterpret_cast<Stored*>(place);
  const auto load = [&](int member) {
    Vectors::copy_to_rest(rest, static_cast<const Stored*>(sources[member]) + begin,
                          count * sizeof(Stored));
    return Vectors::load(rest);
  };
  auto sum = load(0);
  for (int member = 1; member < members; ++member) sum = apply(sum, load(member));
  Vectors::store(rest, finish(sum));
  Vectors::copy_from_rest(result + begin, rest, count * sizeof(Stored));
}

// A vector of the result is stored when those of all sources have been loaded, one of which it may
// be.
template <typename Stored, typename Set>
template <Operator op>
void WideKernels<Stored, Set>::combine(void* result, const void* const sources[], int members,
                                       std::size_t count) {
  using Vectors = WideTypes<Set>;
  const auto apply = [](auto a, auto b) {
    if constexpr (op == Operator::kProduct)
      return Vectors::multiply(a, b);
    else if constexpr (op == Operator::kMin)
      return Vectors::min(a, b);
    else if constexpr (op == Operator::kMax)
      return Vectors::max(a, b);
    else
      return Vectors::add(a, b);
  };
  const auto finish = [&](auto sum) {
    if constexpr (op == Operator::kAverage)
      return Vectors::divide(sum, static_cast<float>(members));
    else
      return sum;
  };
  constexpr std::size_t kLanes = Vectors::kLanes;
  auto* const to = static_cast<Stored*>(result);
  const auto source = [&](int member) { return static_cast<const Stored*>(sources[member]); };
  std::size_t i = 0;
  if (members == 2) {
    const Stored* const first = source(0);
    const Stored* const last = source(1);
    for (; i + kLanes <= count; i += kLanes)
      Vectors::store(to + i, finish(apply(Vectors::load(first + i), Vectors::load(last + i))));
  } else {
    for (; i + kLanes <= count; i += kLanes) {
      auto sum = Vectors::load(source(0) + i);
      for (int member = 1; member < members; ++member)
        sum = apply(sum, Vectors::load(source(member) + i));
      Vectors::store(to + i, finish(sum));
    }
  }
  if (i < count) combine_rest<Stored, Vectors>(to, sources, members, i, count - i, apply, finish);
}

template <typename Stored, typename Set>
const Combine WideKernels<Stored, Set>::kAll[] = {
    combine<Operator::kSum>, combine<Operator::kProduct>, combine<Operator::kMin>,
    combine<Operator::kMax>, combine<Operator::kAverage>};

}  // namespace memspan::inline pgas
