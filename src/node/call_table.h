// SPDX-License-Identifier: Apache-2.0
// How often each public call began, ended well and ended badly, and how long the good ones took:
// the columns of MemFabric's ptracer, with memspan's names.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memspan {

// Of a process. Thread-safe, without locks.
class CallTable {
 public:
  static constexpr std::size_t kMostCalls = 256;  // of more the later ones are not counted

  // `call` lives for ever; equal texts count as one call.
  void begin(const char* call);
  // How long a bad one took does not count.
  void end(const char* call, std::uint64_t nanoseconds, bool is_good);

  // A line for each call that has begun, by name, each with an end of line.
  std::string rows(std::string_view time) const;
  static std::string heading();
  // In a child of fork().
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
