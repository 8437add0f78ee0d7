// SPDX-License-Identifier: Apache-2.0
// The loops of wide_kernels.h over the vectors of wide_types.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pgas/reduction/wide_types.h"

namespace memspan::pgas {

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

}  // namespace memspan::pgas
