// SPDX-License-Identifier: Apache-2.0
// The variables that choose a transport and a carrier, of this process and of others.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace memspan::info {

inline constexpr const char* kTransportVariable = "MEMSPAN_TRANSPORT";
inline constexpr const char* kCarrierVariable = "MEMSPAN_CARRIER";

// By name, those that are set.
using Settings = std::map<std::string, std::string>;
Settings own_settings();
// From the text of /proc/PID/environ.
Settings settings_in(std::string_view variables);

// "\"ucx\"", or "not set".
std::string shown(const Settings& settings, const char* name);

// choose_carrier() reads the environment of this process, which has another one's settings while
// this lives. No other thread may run then.
class BorrowedSettings {
 public:
  explicit BorrowedSettings(const Settings& settings);
  ~BorrowedSettings();
  BorrowedSettings(const BorrowedSettings&) = delete;
  BorrowedSettings& operator=(const BorrowedSettings&) = delete;

 private:
  const Settings own_;
};

}  // namespace memspan::info
