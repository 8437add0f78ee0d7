// SPDX-License-Identifier: Apache-2.0
// The command line of memspan-info.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "info/gather.h"

namespace memspan::info {

// A value.
struct Options {
  enum class Task { kShow, kDiagnose, kTls, kRoute, kRoutes } task = Task::kShow;
  bool is_json = false;
  AskDevices devices = AskDevices::kIfQuick;
  TlsWish tls = {};
  std::vector<std::string> ends = {};  // two, of kRoute
};

// nullopt: help or the version was asked for, and is printed. kInvalidArgument says what is wrong.
Result<std::optional<Options>> parse_options(int argc, const char* const* argv);

}  // namespace memspan::info
