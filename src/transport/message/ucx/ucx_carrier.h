// SPDX-License-Identifier: Apache-2.0
// Streams over active messages of UCX, which uses the network's features
// (docs/design/0009-ucx-carrier.md). Only a module is linked with UCX; the first carrier loads it.
#pragma once

#include "net/trusted_networks.h"
#include "transport/message/carrier.h"

namespace memspan::inline transport {

struct UcxOptions {
  std::string host = "127.0.0.1";  // the numeric address to listen at
  // The only network device that UCX uses; empty: all that it finds.
  std::string device = {};
  TrustedNetworks trusted = {};  // no connections to peers elsewhere
  // Large transfers are native if the network has one-sided access (in builds with
  // MEMSPAN_NATIVE_RMA). Only without a `device`, because then the whole fabric is trusted: UCX
  // picks the network for them.
  bool is_native = false;
};

// Ok for an address that UCX may use.
inline Status check_ucx_address(const TrustedNetworks& trusted, const std::string& address) {
  return trusted.check(address,
                       "UCX neither authenticates nor encrypts what it carries, so it is not used",
                       "MEMSPAN_CARRIER to socket");
}

// Whether the module is installed; loads nothing.
bool has_ucx_module();

// kNotSupported without the module or UCX itself.
Result<std::unique_ptr<Carrier>> make_ucx_carrier(const UcxOptions& options);

// The module exports a function that returns this.
struct UcxModule {
  const char* version;  // MEMSPAN_VERSION of its build
  Result<std::unique_ptr<Carrier>> (*make)(const UcxOptions& options);
};
inline constexpr const char* kUcxModuleEntry = "memspan_ucx_module";
using UcxModuleEntry = const UcxModule* (*)();

}  // namespace memspan::inline transport
