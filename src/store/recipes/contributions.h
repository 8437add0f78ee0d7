// SPDX-License-Identifier: Apache-2.0
// What the members of a group, or the callers of an all-gather, contribute; and the wait for those
// that are missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "core/clock.h"
#include "core/status.h"

namespace memspan {

// A group, or an all-gather, has at most this many members.
inline constexpr int kMostMembers = 65536;
// kInvalidArgument names the allowed values.
Status check_place(int rank, int size);

// Bytes that each of `size` members may contribute: one value of the store holds all of them.
std::size_t most_contributed(int size);

// One member's bytes. A value.
struct Contribution {
  std::uint64_t length = 0;
  std::string bytes;  // empty if there are too many

  Contribution() = default;
  Contribution(std::string_view all, int size)
      : length(all.size()), bytes(all.size() <= most_contributed(size) ? all : "") {}
  static Contribution read(ByteReader& reader) {
    Contribution read;
    read.length = reader.u64();
    read.bytes = reader.text();
    return read;
  }
  void write(ByteWriter& writer) const {
    writer.u64(length);
    writer.text(bytes);
  }
  // kInvalidArgument if there were too many.
  Status check(int rank, int size) const;
};

// The end of messages about missing ranks (core/remedy.h).
extern const char kRanksMissing[];
// "2 of 5 members did not come: rank 1, 4". Names only the first few: a group may be large, and
// each member that gives up asks.
std::string describe_missing(int size, const std::vector<int>& missing);

// Logs once that a caller waits for other members, if it does so for long. One thread at a time.
class WaitNotice {
 public:
  WaitNotice(int rank, int size, std::string where, const Deadline& deadline)
      : rank_(rank), size_(size), where_(std::move(where)), deadline_(deadline) {}
  // Call it now and then while waiting.
  void look();

 private:
  const int rank_;
  const int size_;
  const std::string where_;  // the name of what they come to
  const Deadline deadline_;
  const Clock::time_point begin_ = Clock::now();
  bool is_logged_ = false;
};

}  // namespace memspan
