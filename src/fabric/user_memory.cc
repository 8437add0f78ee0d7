// SPDX-License-Identifier: Apache-2.0
#include "fabric/user_memory.h"

#include <fmt/format.h>

namespace memspan {

Status UserMemory::add(std::uint64_t address, std::uint64_t bytes) {
  if (address == 0) return {Code::kInvalidArgument, "invalid param, addr eq 0"};
  if (bytes == 0 || bytes > kMostUserBytes || bytes > UINT64_MAX - address)
    return {Code::kInvalidArgument,
            fmt::format("invalid param, size is {}, allowed are 1 to {} below the end of addresses",
                        bytes, kMostUserBytes)};
  MutexLock lock(mutex_);
  const auto [range, is_new] = ranges_.emplace(address, bytes);
  if (is_new || range->second == bytes) return Status::ok();
  return {Code::kUnavailable, fmt::format("{:#x} is registered with {} bytes, now {} were said",
                                          address, range->second, bytes)};
}

void UserMemory::remove(std::uint64_t address) {
  MutexLock lock(mutex_);
  ranges_.erase(address);
}

}  // namespace memspan
