// SPDX-License-Identifier: Apache-2.0
// What the user of memspan-top typed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/status.h"

namespace memspan::top {

enum class Order { kRank, kCalls, kBytes, kWaits };

struct Options {
  bool is_once = false;
  bool is_json = false;
  Duration interval = std::chrono::seconds(1);
  Order order = Order::kRank;
  std::string metrics;  // HOST:PORT to serve them at, instead of showing anything; or empty
  std::string only;     // a group's name or a process number; empty: all
};

// nullopt: --help or --version was asked for and has been printed.
Result<std::optional<Options>> parse_options(int argc, const char* const* argv);
std::string_view name_of(Order order);

}  // namespace memspan::top
