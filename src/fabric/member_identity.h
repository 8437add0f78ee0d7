// SPDX-License-Identifier: Apache-2.0
// The owner of a record in the store.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "net/host_identity.h"

namespace memspan {

// A value.
struct MemberIdentity {
  std::uint64_t session = 0;  // at the store
  std::int64_t process = 0;
  Host host;

  // For messages.
  std::string name() const { return fmt::format("process {} on host {}", process, host.name); }
  bool operator==(const MemberIdentity&) const = default;
};

}  // namespace memspan
