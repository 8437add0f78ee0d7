// SPDX-License-Identifier: Apache-2.0
// Small numbers that no two processes have at once. Each is a key of the store while a process has
// it, under that process's lease.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "fabric/member.h"

namespace memspan {

// Thread-safe.
class SharedNumbers {
 public:
  // `prefix` of the keys: the same in all processes that share the numbers.
  SharedNumbers(std::shared_ptr<Member> member, std::string prefix)
      : member_(std::move(member)), prefix_(std::move(prefix)) {}
  // Gives back what this process has.
  ~SharedNumbers();
  SharedNumbers(const SharedNumbers&) = delete;
  SharedNumbers& operator=(const SharedNumbers&) = delete;

  // The lowest free number; kUnavailable if none below `limit` is free.
  Result<std::uint32_t> take(std::uint32_t limit, Deadline deadline) MEMSPAN_EXCLUDES(mutex_);
  // kNotFound when this process does not have it.
  Status give_back(std::uint32_t number, Deadline deadline) MEMSPAN_EXCLUDES(mutex_);

 private:
  std::string key_of(std::uint32_t number) const { return prefix_ + std::to_string(number); }

  const std::shared_ptr<Member> member_;  // shared with what else this process has at the store
  const std::string prefix_;
  Mutex mutex_;
  std::uint64_t attempts_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::set<std::uint32_t> mine_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan
