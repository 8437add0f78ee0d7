// SPDX-License-Identifier: Apache-2.0
// The story of a start for who looks for why it is slow or other than expected: who, where, which
// memory, which route, how long each step took. Told at the log level DEBUG only; a start at
// another level looks at a clock once.
#pragma once

#include <chrono>
#include <string>

#include "world/world.h"

namespace memspan::capi {

// Lives as long as the start. One thread.
class StartStory {
 public:
  explicit StartStory(const char* call);
  // What began with the call before, or with the constructor, is over.
  void step(const char* what);
  void tell(const World& world, std::string_view how_joined) const;

 private:
  const char* call_;
  const bool is_told_;
  const std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point last_;
  std::string steps_;
};

}  // namespace memspan::capi
