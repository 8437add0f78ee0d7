// SPDX-License-Identifier: Apache-2.0
// What the store knows of an endpoint, and who may reach whom.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace memspan::transfer {

enum class Role : std::uint8_t { kSender = 1, kReceiver = 2, kBoth = 3 };

std::string_view role_name(Role role);
// Senders and receivers reach the other kind, and those of both kinds reach and are reached by all.
bool may_reach(Role from, Role to);

// A value.
struct EndpointRecord {
  std::string name;        // normal
  std::string generation;  // another one is another life of the name
  std::string host;
  Role role = Role::kBoth;
  std::string ticket;  // of its process's door
  std::int64_t process = 0;

  // What the door is asked for.
  std::string offer() const { return "trans/" + generation; }
  std::string slice_offer(std::uint32_t slice) const {
    return offer() + "/" + std::to_string(slice);
  }
  bool operator==(const EndpointRecord&) const = default;
};

// No key begins with another one.
std::string record_key(std::string_view normal_name);
std::string encode(const EndpointRecord& record);
// kInvalidArgument for anything that encode() does not write.
Result<EndpointRecord> decode_record(std::string_view bytes);

}  // namespace memspan::transfer
