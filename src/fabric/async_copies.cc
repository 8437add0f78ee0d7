// SPDX-License-Identifier: Apache-2.0
#include "fabric/async_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "core/caught.h"
#include "core/interrupt.h"

namespace memspan {
namespace {

// No other thread of this process has had it.
std::uint64_t number_of_this_thread() {
  static constinit std::atomic<std::uint64_t> last{0};
  static thread_local const std::uint64_t number = last.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

AsyncCopies::AsyncCopies()
    : streams_used_(
          std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 1, kMostStreams)) {}

void AsyncCopies::finish(ByThread::iterator of, Ranks::iterator copy, const Status& status) {
  MutexLock lock(mutex_);
  auto& [left, failure] = of->second;
  if (failure.is_ok()) failure = status;
  left.erase(copy);
  if (!left.empty()) return;
  if (failure.is_ok()) pending_.erase(of);
  changed_.notify_all();
}

Status AsyncCopies::begin(std::set<std::uint32_t> ranks, std::function<Status()> copy) {
  ByThread::iterator of;
  Ranks::iterator place;
  {
    MutexLock lock(mutex_);
    of = pending_.try_emplace(number_of_this_thread()).first;
    Ranks& left = of->second.left;
    place = left.insert(left.end(), std::move(ranks));
  }
  Stream& stream = streams_[next_.fetch_add(1, std::memory_order_relaxed) % streams_used_];
  Status status = caught([&] {
    return stream.submit([this, of, place, work = std::move(copy)] {
      finish(of, place, caught(work));
      return Status::ok();
    });
  });
  if (!status.is_ok()) finish(of, place, Status::ok());
  return status;
}

Status AsyncCopies::wait(Deadline deadline) {
  MutexLock lock(mutex_);
  while (true) {
    const auto mine = pending_.find(number_of_this_thread());
    if (mine == pending_.end()) return Status::ok();
    const Ranks& left = mine->second.left;
    if (left.empty()) return std::move(pending_.extract(mine).mapped().failure);
    if (!wait_interruptibly(changed_, mutex_, deadline) &&
        pending_.contains(number_of_this_thread()) && !left.empty())
      return end_of_wait(
          fmt::format("copies of this thread are still under way, the oldest with rank {}",
                      fmt::join(left.front(), ", ")));
  }
}

}  // namespace memspan
