// SPDX-License-Identifier: Apache-2.0
// The store's record of an endpoint, and which roles reach each other.
#pragma once

#include "fabric/remote_access.h"
#include "store/fields.h"

namespace memspan::transfer {

enum class Role : std::uint8_t { kSender = 1, kReceiver = 2, kBoth = 3 };
constexpr Role last_of(Role) {
  return Role::kBoth;
}

std::string_view role_name(Role role);
// Senders and receivers reach the other kind, and those of both kinds reach and are reached by all.
inline bool may_reach(Role from, Role to) {
  return from != to || from == Role::kBoth;
}

// A value.
struct EndpointRecord {
  std::string name;        // normal
  std::string generation;  // another one is another life of the name
  Role role = Role::kBoth;
  std::string broker_address;  // of its process's broker
  MemberIdentity who;
  std::uint32_t renewals = 0;  // how often it was written again after the store was lost

  // The name of its broker's publication, and of its service for other hosts.
  std::string published_name() const { return "trans/" + generation; }
  std::string allocation_name(std::uint32_t allocation) const {
    return published_name() + "/" + std::to_string(allocation);
  }
  static void fields(auto& codec, auto& self) {
    codec(self.name, self.generation, self.role, self.broker_address, self.who.session,
          self.who.process, self.who.host.id, self.who.host.name, self.renewals);
  }
  bool operator==(const EndpointRecord&) const = default;
};

inline constexpr std::string_view kRecordsPrefix = "trans/";  // of the keys of all records
// No record's key begins with another one's.
inline std::string record_key(std::string_view normal_name) {
  return std::string(kRecordsPrefix).append(normal_name).append("/");
}
// The name that record_key() and destroyed_key() have made such a key from.
std::string_view name_of_key(std::string_view key);
// Set beside the record while an endpoint that members on other hosts may know is destroyed. They
// cannot see that in its memory.
inline std::string destroyed_key(const EndpointRecord& record) {
  return record_key(record.name) + "destroyed/" + record.generation;
}
std::string encode(const EndpointRecord& record);
// kInvalidArgument for anything that encode() does not write.
Result<EndpointRecord> decode_record(std::string_view bytes);

// ---- names

// Names of endpoints: "10.0.0.1:6000", "[fe80::1]:6000", "node7:6000". They look like addresses,
// but nothing listens there, and no name server is asked. normal_name() gives the one spelling that
// all spellings of a name have in common. kInvalidArgument with the text and what is allowed.
Result<std::string> normal_name(std::string_view text);

}  // namespace memspan::transfer
