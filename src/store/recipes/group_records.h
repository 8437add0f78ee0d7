// SPDX-License-Identifier: Apache-2.0
// The groups' records in the store: a key of each member under its lease. A group that
// create_group() has made (all_gather.h) also has a list of its members.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "core/status.h"

namespace memspan {

// The content of a member's key. A value.
struct GroupPresence {
  std::uint32_t size = 0;  // of the group, as the member says
  std::uint64_t lease = 0;
  std::string member = {};

  std::string encode() const {
    ByteWriter writer;
    writer.u32(size);
    writer.u64(lease);
    writer.text(member);
    return writer.take();
  }
  static Result<GroupPresence> decode(std::string_view text) {
    ByteReader reader(text);
    GroupPresence read;
    read.size = reader.u32();
    read.lease = reader.u64();
    read.member = reader.text();
    if (!reader.is_finished()) return Status(Code::kInternal, "a malformed member in the store");
    return read;
  }
};

// Members by rank. A value.
struct GroupMembers {
  struct Member {
    std::uint64_t nonce = 0;
    std::string name;
  };
  std::string alive_prefix;
  std::vector<Member> members;

  std::string alive_key(std::uint64_t nonce) const {
    return fmt::format("{}{:016x}", alive_prefix, nonce);
  }
  std::string encode() const {
    ByteWriter writer;
    writer.text(alive_prefix);
    writer.u32(static_cast<std::uint32_t>(members.size()));
    for (const Member& member : members) {
      writer.u64(member.nonce);
      writer.text(member.name);
    }
    return writer.take();
  }
  static Result<GroupMembers> decode(std::string_view text) {
    ByteReader reader(text);
    GroupMembers read{.alive_prefix = std::string(reader.text()), .members = {}};
    const std::uint32_t count = reader.u32();
    for (std::uint32_t i = 0; i < count && reader.is_ok(); ++i) {
      const std::uint64_t nonce = reader.u64();
      read.members.push_back({.nonce = nonce, .name = std::string(reader.text())});
    }
    if (!reader.is_finished()) return Status(Code::kInternal, "a malformed group in the store");
    return read;
  }
};

inline std::string members_key(std::string_view group) {
  return fmt::format("{}/members", group);
}

}  // namespace memspan
