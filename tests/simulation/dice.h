// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same for the same seed on every machine and with every compiler.
#pragma once

#include <cstdint>
#include <random>

namespace memspan::simulation {

// One thread at a time.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  // 0 to `sides` - 1. Not std::uniform_int_distribution, which every library does in its own way.
  std::uint64_t below(std::uint64_t sides) { return engine_() % sides; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace memspan::simulation
