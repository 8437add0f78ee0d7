// SPDX-License-Identifier: Apache-2.0
#include "fabric/shared_numbers.h"

#include <fmt/format.h>

namespace memspan {

SharedNumbers::~SharedNumbers() {
  MutexLock lock(mutex_);
  for (std::uint32_t number : mine_)
    member_->tell_end([&](const Deadline& deadline) {
      return member_->store().remove(key_of(number), deadline).status();
    });
}

Result<std::uint32_t> SharedNumbers::take(std::uint32_t limit, Deadline deadline) {
  KeyValueStore& store = member_->store();
  while (!deadline.has_passed()) {
    MEMSPAN_TRY_ASSIGN(auto keys, store.list(prefix_, deadline), "looking for a free number");
    std::set<std::string> taken;
    for (auto& [key, value] : keys) taken.insert(std::move(key));
    std::uint32_t number = 0;
    while (number < limit && taken.contains(key_of(number))) ++number;
    if (number == limit)
      return Status(Code::kUnavailable, fmt::format("all {} numbers are taken", limit));
    std::string mark;  // of this attempt only
    {
      MutexLock lock(mutex_);
      mark = fmt::format("{}.{}", store.lease(), ++attempts_);
    }
    MEMSPAN_TRY_ASSIGN(std::string now,
                       store.compare_and_swap(key_of(number), "", mark, deadline, KeyLife::kLease),
                       "taking a number");
    if (now != mark) continue;  // another process was faster, so one made progress
    MutexLock lock(mutex_);
    mine_.insert(number);
    return number;
  }
  return Status(Code::kTimeout, "timeout: others were faster at every number that was free");
}

Status SharedNumbers::give_back(std::uint32_t number, Deadline deadline) {
  {
    MutexLock lock(mutex_);
    if (mine_.erase(number) == 0)
      return {Code::kNotFound, fmt::format("this process does not have the number {}", number)};
  }
  auto removed = member_->store().remove(key_of(number), deadline);
  if (removed.is_ok()) return Status::ok();
  MutexLock lock(mutex_);
  mine_.insert(number);
  return removed.status().annotate("giving a number back");
}

}  // namespace memspan
