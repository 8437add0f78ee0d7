// SPDX-License-Identifier: Apache-2.0
#include "info/settings.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/environment.h"
#include "system_files/system_files.h"

namespace memspan::info {
namespace {

// The variables that AllowedTransports and choose_carrier() read.
constexpr const char* kVariables[] = {
    kTransportVariable,       kCarrierVariable,     "MEMSPAN_NET",
    "MEMSPAN_ENCRYPT_DATA",   "MEMSPAN_NATIVE_RMA", "MEMSPAN_SILENCE_LIMIT",
    "MEMSPAN_TRUSTED_FABRIC", "UCX_NET_DEVICES"};

void put(const Settings& settings) {
  for (const char* name : kVariables) {
    const auto found = settings.find(name);
    if (found == settings.end())
      ::unsetenv(name);
    else
      ::setenv(name, found->second.c_str(), 1);
  }
}

}  // namespace

Settings own_settings() {
  Settings settings;
  for (const char* name : kVariables)
    if (auto value = environment(name)) settings.emplace(name, *std::move(value));
  return settings;
}

Settings settings_in(std::string_view variables) {
  Settings settings;
  for (const char* name : kVariables)
    if (auto value = variable_in(variables, name)) settings.emplace(name, *std::move(value));
  return settings;
}

std::string shown(const Settings& settings, const char* name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "not set" : fmt::format("\"{}\"", found->second);
}

BorrowedSettings::BorrowedSettings(const Settings& settings) : own_(own_settings()) {
  put(settings);
}

BorrowedSettings::~BorrowedSettings() {
  put(own_);
}

}  // namespace memspan::info
