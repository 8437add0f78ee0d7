// SPDX-License-Identifier: Apache-2.0
// The recipes share this: unique numbers, keys that end in a rank, records of keys, what the
// members of a group or the callers of an all-gather contribute, and the wait for those that are
// missing.
#pragma once

#include <fmt/format.h>

#include <map>

#include "core/environment.h"
#include "core/random.h"
#include "store/fields.h"
#include "store/key_value_store.h"

namespace memspan::inline store {

inline std::uint64_t new_nonce() {
  return random_number() | 1;  // 0 means none
}

// With leading zeros, so that keys are listed in the order of the ranks.
inline std::string rank_key(std::string_view prefix, int rank) {
  return fmt::format("{}{:05}", prefix, rank);
}

inline Result<int> rank_in_key(std::string_view key, std::string_view prefix) {
  MEMSPAN_PASS_ASSIGN(auto rank,
                      parse_integer("a rank in a key", key.substr(prefix.size()), 0, 65535));
  return static_cast<int>(rank);
}

// Nullopt if the key does not exist.
template <typename Record>
Result<std::optional<Record>> find_record(KeyValueStore& store, std::string_view key,
                                          const Deadline& deadline) {
  const auto text = store.get_now(key, deadline);
  if (text.code() == Code::kNotFound) return std::optional<Record>();
  if (!text.is_ok()) return text.status();
  MEMSPAN_PASS_ASSIGN(auto record, decode_record<Record>(*text));
  return std::optional(std::move(record));
}

// The records of all keys that are the prefix and a rank.
template <typename Record>
Result<std::map<int, Record>> list_records(KeyValueStore& store, std::string_view prefix,
                                           const Deadline& deadline) {
  MEMSPAN_PASS_ASSIGN(const StoreListing listing, store.list(prefix, deadline));
  std::map<int, Record> records;
  for (const auto& [key, value] : listing) {
    MEMSPAN_PASS_ASSIGN(const int rank, rank_in_key(key, prefix));
    MEMSPAN_PASS_ASSIGN(records[rank], decode_record<Record>(value));
  }
  return records;
}

// Bytes that each of `size` members may contribute: one value of the store holds all of them.
std::size_t most_contributed(int size);

// One member's bytes. A value.
struct Contribution {
  std::uint64_t length = 0;
  std::string bytes;  // empty if there are too many

  Contribution() = default;
  Contribution(std::string_view all, int size)
      : length(all.size()), bytes(all.size() <= most_contributed(size) ? all : "") {}
  static void fields(auto& codec, auto& self) { codec(self.length, self.bytes); }
  // kInvalidArgument if there were too many.
  Status check(int rank, int size) const;
};

// kPeerLost. Without `has_left`, the member's lease has ended.
Status member_is_gone(int rank, std::string_view member, bool has_left = false);

// The end of messages about missing ranks (core/status.h).
extern const char kRanksMissing[];
// "2 of 5 members did not come: rank 1, 4". Names only the first few: a group may be large, and
// each member that gives up asks.
std::string describe_missing(int size, const std::vector<int>& missing);

// Logs once that a caller waits for other members, if it does so for long. One thread at a time.
struct WaitNotice {
  const int rank;
  const int size;
  const std::string where;  // the name of what they come to
  const Deadline deadline;
  const Clock::time_point begin = Clock::now();
  bool is_logged = false;

  // Call it now and then while waiting.
  void look();
};

}  // namespace memspan::inline store
