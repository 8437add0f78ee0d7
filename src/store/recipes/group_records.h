// SPDX-License-Identifier: Apache-2.0
// A group's records in the store; store_group.h shows the keys.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "store/fields.h"
#include "store/key_value_store.h"
#include "store/recipes/contributions.h"

namespace memspan {

// A member's own record, which outlives it. A value.
struct GroupMember {
  std::uint64_t lease = 0;
  std::string name = {};
  bool has_left = false;
  // Its contributions to the operations that it does not know to be over.
  std::map<std::uint64_t, Contribution> parts = {};

  static void fields(auto& codec, auto& self) {
    codec(self.lease, self.name, self.has_left);
    codec.rest(self.parts);
  }
  std::string encode() const { return encode_record(*this); }
  static Result<GroupMember> decode(std::string_view text) {
    return decode_record<GroupMember>(text, "member");
  }
};

// How an operation ended. A value.
struct GroupOutcome {
  std::uint64_t operation = 0;
  bool is_complete = false;  // all have contributed
  Status status = {};
  std::vector<std::string> parts = {};  // by rank, if the status is kOk

  std::string encode() const {
    FieldWriter writer;
    writer(operation, is_complete, status);
    // Equal parts, of a barrier or an agreement, are written once.
    const bool are_equal = std::equal(parts.begin() + !parts.empty(), parts.end(), parts.begin());
    writer(static_cast<std::uint32_t>(are_equal ? parts.size() : 0));
    if (!are_equal)
      writer.rest(parts);
    else if (!parts.empty())
      writer(parts.front());
    return writer.take();
  }
  static Result<GroupOutcome> decode(std::string_view text) {
    FieldReader reader(text);
    GroupOutcome read;
    std::uint32_t equal = 0;
    reader(read.operation, read.is_complete, read.status, equal);
    reader.rest(read.parts);
    const bool are_right = equal == 0 || (equal <= kMostMembers && read.parts.size() == 1 &&
                                          equal * read.parts.front().size() <= kMaxValueBytes);
    if (equal > 1 && are_right) read.parts.assign(equal, std::string(read.parts.front()));
    if (!reader.is_finished() || !are_right)
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
    static void fields(auto& codec, auto& self) { codec(self.nonce, self.lease, self.name); }
  };
  std::string alive_prefix;
  std::vector<Member> members;

  std::string alive_key(std::uint64_t nonce) const {
    return fmt::format("{}{:016x}", alive_prefix, nonce);
  }
  static void fields(auto& codec, auto& self) {
    codec(self.alive_prefix);
    codec.rest(self.members);
  }
  std::string encode() const { return encode_record(*this); }
  static Result<GroupFounders> decode(std::string_view text) {
    return decode_record<GroupFounders>(text, "group");
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
