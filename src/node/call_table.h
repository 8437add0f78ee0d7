// SPDX-License-Identifier: Apache-2.0
// Counts how often each public call began, succeeded and failed, and how long the successes took.
// The columns are those of MemFabric's ptracer, with memspan's names.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memspan {

// One per process. Thread-safe, without locks.
class CallTable {
 public:
  static constexpr std::size_t kMostCalls = 256;  // calls beyond these are not counted

  // `call` must live forever; equal texts count as one call.
  void begin(const char* call);
  // The time of a failed call is not counted.
  void end(const char* call, std::uint64_t nanoseconds, bool is_good);

  // One line for each call that has begun, sorted by name, each with a newline.
  std::string rows(std::string_view time) const;
  static std::string heading();
  // Call it in a child of fork().
  void clear();

 private:
  struct Row {
    std::atomic<const char*> call;
    std::atomic<std::uint64_t> begun;
    std::atomic<std::uint64_t> good;
    std::atomic<std::uint64_t> bad;
    std::atomic<std::uint64_t> least_ns;  // 0: none yet
    std::atomic<std::uint64_t> most_ns;
    std::atomic<std::uint64_t> total_ns;
  };
  Row* row_of(const char* call);

  std::array<Row, kMostCalls> rows_{};
};

CallTable& call_table();

}  // namespace memspan
