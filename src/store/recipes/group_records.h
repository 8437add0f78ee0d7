// SPDX-License-Identifier: Apache-2.0
// A group's records in the store; store_group.h shows the keys.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "core/status.h"
#include "store/key_value_store.h"
#include "store/recipes/contributions.h"
#include "store/recipes/key_names.h"

namespace memspan {

// A member's own record, which outlives it. A value.
struct GroupMember {
  std::uint64_t lease = 0;
  std::string name = {};
  bool has_left = false;
  // Its contributions to the operations that it does not know to be over.
  std::map<std::uint64_t, Contribution> parts = {};

  std::string encode() const {
    ByteWriter writer;
    writer.u64(lease);
    writer.text(name);
    writer.u8(has_left ? 1 : 0);
    for (const auto& [operation, part] : parts) {
      writer.u64(operation);
      part.write(writer);
    }
    return writer.take();
  }
  static Result<GroupMember> decode(std::string_view text) {
    ByteReader reader(text);
    GroupMember read{.lease = reader.u64()};
    read.name = reader.text();
    read.has_left = reader.u8() != 0;
    while (reader.is_ok() && !reader.is_finished()) {
      const std::uint64_t operation = reader.u64();
      read.parts[operation] = Contribution::read(reader);
    }
    if (!reader.is_finished()) return Status(Code::kInternal, "a malformed member in the store");
    return read;
  }
};

// How an operation ended. A value.
struct GroupOutcome {
  std::uint64_t operation = 0;
  bool is_complete = false;  // all have contributed
  Status status = {};
  std::vector<std::string> parts = {};  // by rank, if the status is kOk

  std::string encode() const {
    ByteWriter writer;
    writer.u64(operation);
    writer.u8(is_complete ? 1 : 0);
    writer.u8(static_cast<std::uint8_t>(status.code()));
    writer.text(status.message());
    // Equal parts, of a barrier or an agreement, are written once.
    const bool are_equal = std::equal(parts.begin() + !parts.empty(), parts.end(), parts.begin());
    writer.u32(static_cast<std::uint32_t>(are_equal ? parts.size() : 0));
    for (const std::string& part : parts) {
      writer.text(part);
      if (are_equal) break;
    }
    return writer.take();
  }
  static Result<GroupOutcome> decode(std::string_view text) {
    ByteReader reader(text);
    GroupOutcome read{.operation = reader.u64()};
    read.is_complete = reader.u8() != 0;
    const auto code = static_cast<Code>(reader.u8());
    const std::string_view message = reader.text();
    if (code != Code::kOk) read.status = Status(code, std::string(message));
    const std::uint32_t equal = reader.u32();
    while (reader.is_ok() && !reader.is_finished()) read.parts.emplace_back(reader.text());
    const bool are_right = equal == 0 || (equal <= kMostMembers && read.parts.size() == 1 &&
                                          equal * read.parts.front().size() <= kMaxValueBytes);
    if (equal > 1 && are_right) read.parts.assign(equal, std::string(read.parts.front()));
    if (!reader.is_finished() || !are_right || code > Code::kInternal)
      return Status(Code::kInternal, "a malformed outcome in the store");
    return read;
  }
};

// The members of a created group, by rank. A value.
struct GroupFounders {
  struct Member {
    std::uint64_t nonce = 0;
    std::uint64_t lease = 0;
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
    for (const Member& member : members) {
      writer.u64(member.nonce);
      writer.u64(member.lease);
      writer.text(member.name);
    }
    return writer.take();
  }
  static Result<GroupFounders> decode(std::string_view text) {
    ByteReader reader(text);
    GroupFounders read{.alive_prefix = std::string(reader.text()), .members = {}};
    while (reader.is_ok() && !reader.is_finished()) {
      Member member{.nonce = reader.u64(), .lease = reader.u64(), .name = {}};
      member.name = reader.text();
      read.members.push_back(std::move(member));
    }
    if (!reader.is_finished()) return Status(Code::kInternal, "a malformed group in the store");
    return read;
  }
};

// The keys of one group. A value.
struct GroupKeys {
  std::string group;
  int size = 0;
  GroupFounders founders = {};            // without members: the group has only a name
  std::map<std::string, int> ranks = {};  // of the founders, by their keys under alive_prefix

  bool is_created() const { return !founders.members.empty(); }
  std::string founders_key() const { return group + "/members"; }
  std::string size_key() const { return group + "/size"; }
  std::string member_prefix() const { return group + "/member/"; }
  std::string member_key(int rank) const { return rank_key(member_prefix(), rank); }
  std::string alive_prefix() const {
    return is_created() ? founders.alive_prefix : group + "/alive/";
  }
  std::string alive_key(int rank) const {
    if (!is_created()) return rank_key(alive_prefix(), rank);
    return founders.alive_key(founders.members[static_cast<std::size_t>(rank)].nonce);
  }
  // -1 for a key of another group.
  int rank_of_alive(std::string_view key) const {
    if (is_created()) {
      const auto found = ranks.find(std::string(key));
      return found == ranks.end() ? -1 : found->second;
    }
    const auto rank = rank_in_key(key, alive_prefix());
    return rank.is_ok() ? *rank : -1;
  }
  std::string wait_prefix() const { return group + "/wait/"; }
  std::string collector_key() const { return wait_prefix() + "collector"; }
  std::string outcome_key() const { return wait_prefix() + "outcome"; }
};

}  // namespace memspan
