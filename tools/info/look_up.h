// SPDX-License-Identifier: Apache-2.0
// Where names of hosts lead, asked as members of a job ask, and no longer than a tool may take.
#pragma once

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "net/endpoint.h"

namespace memspan::info {

// A value.
struct HostAddress {
  std::string text;      // numeric
  bool is_here = false;  // one of this host, of a loopback or all of them
};

// In the order in which a member tries them. kTimeout: the name server did not answer in time;
// kUnavailable: there is no such host.
Result<std::vector<HostAddress>> look_up(const Endpoint& there, const Deadline& deadline);

// "localhost", 127.0.0.0/8 and ::1.
bool is_loopback(const std::string& host);
// Whether a store with this host listens at all addresses.
bool is_any_address(const std::string& host);

}  // namespace memspan::info
