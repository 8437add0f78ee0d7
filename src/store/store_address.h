// SPDX-License-Identifier: Apache-2.0
// The address of a job's store:
//   tcp://HOST:PORT[,tcp://HOST:PORT...]
//     the built-in server (net/endpoint.h has all forms), at the first of these addresses that
//     answers
//   etcd://[USER@]HOST:PORT[,HOST:PORT...][/PREFIX]
//     etcd's members, a user there, and the prefix of its keys
#pragma once

#include <vector>

#include "net/endpoint.h"

namespace memspan::inline store {

// A value.
struct StoreAddress {
  enum class Kind { kServer, kEtcd };

  StoreAddress() = default;
  StoreAddress(Endpoint server)  // NOLINT: an endpoint is the address of a built-in server
      : endpoints{std::move(server)} {}

  // kInvalidArgument names the text, the error and the allowed forms.
  static Result<StoreAddress> parse(std::string_view url);
  std::string to_string() const;
  const Endpoint& first() const { return endpoints.front(); }
  // kInvalidArgument for a list: two hosts could each host a store of it.
  Status check_may_be_hosted() const;
  bool is_etcd() const { return kind == Kind::kEtcd; }
  bool operator==(const StoreAddress&) const = default;

  Kind kind = Kind::kServer;
  std::vector<Endpoint> endpoints = {Endpoint{}};  // at least one
  std::string prefix = {};                         // of etcd, without slashes at its ends
  std::string user = {};                           // at etcd; empty: none
};

}  // namespace memspan::inline store
