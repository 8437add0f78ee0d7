// SPDX-License-Identifier: Apache-2.0
// The store's record of an endpoint, and which roles reach each other.
#pragma once

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "fabric/remote_access.h"
#include "store/fields.h"

namespace memspan::transfer {

enum class Role : std::uint8_t { kSender = 1, kReceiver = 2, kBoth = 3 };
constexpr Role last_of(Role) {
  return Role::kBoth;
}

inline std::string_view role_name(Role role) {
  constexpr std::array<std::string_view, 4> kNames{"UNKNOWN", "SENDER", "RECEIVER", "BOTH"};
  return kNames[static_cast<std::size_t>(role) % kNames.size()];
}
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
    codec(self.name, self.generation, self.role, self.broker_address, self.who, self.renewals);
  }
  bool operator==(const EndpointRecord&) const = default;
};

inline constexpr std::string_view kRecordsPrefix = "trans/";  // of the keys of all records
// No record's key begins with another one's.
inline std::string record_key(std::string_view normal_name) {
  return std::string(kRecordsPrefix).append(normal_name).append("/");
}
// The name that record_key() and destroyed_key() have made such a key from.
inline std::string_view name_of_key(std::string_view key) {
  key.remove_prefix(std::min(key.size(), kRecordsPrefix.size()));
  return key.substr(0, key.find('/'));
}
// Set beside the record while an endpoint that members on other hosts may know is destroyed. They
// cannot see that in its memory.
inline std::string destroyed_key(const EndpointRecord& record) {
  return record_key(record.name) + "destroyed/" + record.generation;
}
inline constexpr char kRecordFormat = 4;
inline std::string encode(const EndpointRecord& record) {
  return kRecordFormat + encode_record(record);
}
// kInvalidArgument for anything that encode() does not write.
inline Result<EndpointRecord> decode_record(std::string_view bytes) {
  FieldReader reader(bytes.substr(std::min<std::size_t>(bytes.size(), 1)));
  EndpointRecord record;
  reader(record);
  if (reader.is_finished() && bytes[0] == kRecordFormat && record.role >= Role::kSender)
    return record;
  return Status(Code::kInvalidArgument, "an endpoint's record at the store is damaged");
}

// ---- names

// Names of endpoints: "10.0.0.1:6000", "[fe80::1]:6000", "node7:6000". They look like addresses,
// but nothing listens there, and no name server is asked. normal_name() gives the one spelling that
// all spellings of a name have in common.

// Empty if it is not an address of that family.
inline std::string normal_address(int family, const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  char normal[INET6_ADDRSTRLEN];
  if (inet_pton(family, text.c_str(), bytes) != 1 ||
      inet_ntop(family, bytes, normal, sizeof normal) == nullptr)
    return "";
  return normal;
}

inline constexpr std::size_t kMostDnsBytes = 253;  // of a host's name

// A host's name, in small letters; empty if it is invalid. The last part has a letter, so that an
// address with a mistake is not taken for a name.
inline std::string normal_host(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  std::string normal(text);
  for (char& each : normal)
    if (each >= 'A' && each <= 'Z') each = static_cast<char>(each | 0x20);
  // A part is not empty, and has no hyphen at its ends.
  const std::string parts = "." + normal + ".";
  for (const char* const wrong : {"..", ".-", "-."})
    if (parts.find(wrong) != std::string::npos) return "";
  const bool is_allowed =
      normal.find_first_not_of(std::string(kLetters) + "0123456789-_.") == std::string::npos;
  const bool has_letter =
      normal.find_first_of(kLetters, normal.rfind('.') + 1) != std::string::npos;
  return text.size() <= kMostDnsBytes && is_allowed && has_letter ? normal : "";
}

// kInvalidArgument with the text and what is allowed.
inline Result<std::string> normal_name(std::string_view text) {
  constexpr std::size_t kMostBytes = kMostDnsBytes + 11;  // a colon, a port, and some zeros
  const Status wrong(Code::kInvalidArgument,
                     fmt::format("invalid unique_id, which is \"{}\": allowed are ip:port, "
                                 "[ipv6]:port and host:port, with a port of 1 to 65535",
                                 text.substr(0, kMostBytes)));
  const std::size_t colon = text.rfind(':');
  if (text.size() > kMostBytes || colon == std::string_view::npos) return wrong;
  const std::string_view digits = text.substr(colon + 1);
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0 || port > 65535)
    return wrong;
  std::string_view host = text.substr(0, colon);
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (has_brackets) host = host.substr(1, host.size() - 2);
  if (!has_brackets)
    if (const std::string v4 = normal_address(AF_INET, std::string(host)); !v4.empty())
      return fmt::format("{}:{}", v4, port);
  if (const std::string v6 = normal_address(AF_INET6, std::string(host)); !v6.empty())
    return fmt::format("[{}]:{}", v6, port);
  if (!has_brackets)
    if (const std::string name = normal_host(host); !name.empty())
      return fmt::format("{}:{}", name, port);
  return wrong;
}

}  // namespace memspan::transfer
