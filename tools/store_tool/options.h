// SPDX-License-Identifier: Apache-2.0
// The command line of memspan-store.
#pragma once

#include <optional>
#include <string>

#include "core/status.h"
#include "net/endpoint.h"
#include "net/security.h"

namespace memspan::store_tool {

// A value.
struct Options {
  Endpoint listen;
  std::string job;           // empty: any
  std::string address_file;  // empty: none
  std::string secret_file;   // at most one of these three
  std::string tls_info;
  bool is_plain = false;
  std::string metrics;  // HOST:PORT to serve them at; empty: nowhere

  // Reads the files; may be called again while the store runs.
  Result<StoreSecurity> security() const;
};

// nullopt: help or the version was asked for and printed. kInvalidArgument names the option.
Result<std::optional<Options>> parse_options(int argc, const char* const* argv);

}  // namespace memspan::store_tool
