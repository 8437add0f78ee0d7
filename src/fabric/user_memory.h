// SPDX-License-Identifier: Apache-2.0
// Memory that a program has registered for copies. The copies do not need it; the ranges are kept
// so that mistakes in registering are found on one host already.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>

#include "core/mutex.h"
#include "core/status.h"

namespace memspan::inline fabric {

inline constexpr std::uint64_t kMostUserBytes = std::uint64_t{1} << 40;

// Thread-safe.
class UserMemory {
 public:
  // Ranges may overlap. Adding the same range again is ok. kUnavailable: the address has another
  // size. kInvalidArgument: a null address, or a size of 0 or beyond the limit.
  Status add(std::uint64_t address, std::uint64_t bytes) MEMSPAN_EXCLUDES(mutex_) {
    if (address == 0) return {Code::kInvalidArgument, "invalid param, addr eq 0"};
    if (bytes == 0 || bytes > kMostUserBytes || bytes > UINT64_MAX - address)
      return {
          Code::kInvalidArgument,
          fmt::format("invalid param, size is {}, allowed are 1 to {} below the end of addresses",
                      bytes, kMostUserBytes)};
    MutexLock lock(mutex_);
    const auto [range, is_new] = ranges_.emplace(address, bytes);
    if (is_new || range->second == bytes) return Status::ok();
    return {Code::kUnavailable, fmt::format("{:#x} is registered with {} bytes, now {} were said",
                                            address, range->second, bytes)};
  }
  // An unknown address is ok.
  void remove(std::uint64_t address) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ranges_.erase(address);
  }

 private:
  Mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> ranges_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::inline fabric
