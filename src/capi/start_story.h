// SPDX-License-Identifier: Apache-2.0
// Explains a start that is slow or unexpected: processes, hosts, memory, routes, the time of each
// step. Logs it at the level DEBUG; INFO has only the routes. Without DEBUG a start reads a clock
// once.
#pragma once

#include <chrono>
#include <string>

#include "world/world.h"

namespace memspan::capi {

// Lives as long as the start. One thread.
class StartStory {
 public:
  explicit StartStory(const char* call);
  // Ends the step that began at the previous call or at construction.
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
