// SPDX-License-Identifier: Apache-2.0
// The command line of memspan-store.
#pragma once

#include <optional>
#include <string>

#include "core/status.h"
#include "store/endpoint.h"
#include "store/server.h"

namespace memspan::store_tool {

struct Options {
  Endpoint listen;
  StoreServerOptions server;
  std::string address_file;  // empty: none
};

// nullopt: help or the version was asked for and printed. kInvalidArgument names the option.
Result<std::optional<Options>> parse_options(int argc, const char* const* argv);

// What the files of the command line say now; for reading them again while the store runs.
Result<StoreSecurity> read_security(int argc, const char* const* argv);

}  // namespace memspan::store_tool
