// SPDX-License-Identifier: Apache-2.0
// Streams over UCX, which uses what the network has (docs/design/0009-ucx-carrier.md). What is
// linked with UCX is a module that is loaded when the first carrier is made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/trusted_networks.h"
#include "transport/message/carrier.h"

namespace memspan {

struct UcxOptions {
  std::string host = "127.0.0.1";  // the numeric address to listen at
  // UCX uses no other network device than this one; empty: those that it finds.
  std::string device = {};
  TrustedNetworks trusted = {};  // peers elsewhere are not connected to
  // Large transfers go natively where the network has one-sided access. Only without a `device`,
  // for then the whole fabric is trusted: UCX picks the network for them.
  bool is_native = false;
  // Large payloads of the streams by rendezvous: where a network reads or writes memory by itself,
  // unless it is said.
  enum class Rendezvous : std::uint8_t { kNever, kWhereNative, kAlways };
  Rendezvous rendezvous = Rendezvous::kWhereNative;
};

// Ok for an address that UCX may use.
inline Status check_ucx_address(const TrustedNetworks& trusted, const std::string& address) {
  return trusted.check(address,
                       "UCX neither authenticates nor encrypts what it carries, so it is not used",
                       "MEMSPAN_CARRIER to socket");
}

// Whether the module is installed; nothing is loaded.
bool has_ucx_module();

// kNotSupported without the module or UCX itself.
Result<std::unique_ptr<Carrier>> make_ucx_carrier(const UcxOptions& options);

// What the module exports: a function of this type.
struct UcxModule {
  const char* version;  // MEMSPAN_VERSION of who made it
  Result<std::unique_ptr<Carrier>> (*make)(const UcxOptions& options);
};
inline constexpr const char* kUcxModuleEntry = "memspan_ucx_module";
using UcxModuleEntry = const UcxModule* (*)();

}  // namespace memspan
