// SPDX-License-Identifier: Apache-2.0
// Where the members of a job find their store:
//   tcp://HOST:PORT                            the built-in server (endpoint.h has all forms)
//   etcd://HOST:PORT[,HOST:PORT...][/PREFIX]   etcd's members, and what its keys begin with
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "store/endpoint.h"

namespace memspan {

// A value.
struct StoreAddress {
  enum class Kind { kServer, kEtcd };

  StoreAddress() = default;
  StoreAddress(Endpoint server)  // NOLINT: an endpoint is the address of a built-in server
      : endpoints{std::move(server)} {}

  // kInvalidArgument with the text, what is wrong with it and the allowed forms.
  static Result<StoreAddress> parse(std::string_view url);
  std::string to_string() const;
  const Endpoint& first() const { return endpoints.front(); }
  bool is_etcd() const { return kind == Kind::kEtcd; }
  bool operator==(const StoreAddress&) const = default;

  Kind kind = Kind::kServer;
  std::vector<Endpoint> endpoints = {Endpoint{}};  // one of a server, one and more of etcd
  std::string prefix = {};                         // of etcd, without slashes at its ends
};

}  // namespace memspan
