// SPDX-License-Identifier: Apache-2.0
// What the store knows of an endpoint, and who may reach whom.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"
#include "fabric/member_identity.h"

namespace memspan::transfer {

enum class Role : std::uint8_t { kSender = 1, kReceiver = 2, kBoth = 3 };

std::string_view role_name(Role role);
// Senders and receivers reach the other kind, and those of both kinds reach and are reached by all.
bool may_reach(Role from, Role to);

// A value.
struct EndpointRecord {
  std::string name;        // normal
  std::string generation;  // another one is another life of the name
  Role role = Role::kBoth;
  std::string broker_address;  // of its process's broker
  MemberIdentity who;
  std::uint32_t renewals = 0;  // how often it was written again after the store was lost

  // What its broker publishes, and its service for other hosts.
  std::string published_name() const { return "trans/" + generation; }
  std::string allocation_name(std::uint32_t allocation) const {
    return published_name() + "/" + std::to_string(allocation);
  }
  bool operator==(const EndpointRecord&) const = default;
};

// No record's key begins with another one's.
std::string record_key(std::string_view normal_name);
// Set, beside the record, while an endpoint that members on other hosts may know is destroyed: they
// see no memory of it that says so.
std::string destroyed_key(const EndpointRecord& record);
std::string encode(const EndpointRecord& record);
// kInvalidArgument for anything that encode() does not write.
Result<EndpointRecord> decode_record(std::string_view bytes);

}  // namespace memspan::transfer
