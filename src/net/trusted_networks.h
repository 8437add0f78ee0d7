// SPDX-License-Identifier: Apache-2.0
// The addresses that may receive data without authentication or encryption: loopback addresses, and
// the networks that MEMSPAN_TRUSTED_FABRIC declares trusted.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/status.h"

namespace memspan::inline net {

// A value.
class TrustedNetworks {
 public:
  // MEMSPAN_TRUSTED_FABRIC is "1" for every network, "0" or empty for none, or subnets
  // ("10.0.0.0/8,fd00::/8"). kInvalidArgument names the allowed values.
  static Result<TrustedNetworks> from_environment();
  static Result<TrustedNetworks> parse(std::string_view text);

  bool are_all() const { return are_all_; }
  // `address` is numeric.
  bool contain(const std::string& address) const;
  // kAuth, with reason and remedy, for an address of another network. `why` begins the message
  // ("UCX does not encrypt, so it is not used"), `otherwise` ends it ("MEMSPAN_CARRIER to socket").
  Status check(const std::string& address, std::string_view why, std::string_view otherwise) const;

 private:
  struct Subnet {
    std::array<std::uint8_t, 16> bytes;  // IPv4 addresses are mapped: ::ffff:a.b.c.d
    int bits;
  };
  static Result<Subnet> parse_subnet(std::string_view text);

  bool are_all_ = false;
  std::vector<Subnet> subnets_;
};

}  // namespace memspan::inline net
