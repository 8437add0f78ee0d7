// SPDX-License-Identifier: Apache-2.0
#include "fabric/async_copies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/interrupt.h"
#include "core/lifetime.h"
#include "core/thread.h"

namespace memspan {
namespace {

std::atomic<std::uint64_t> last_number{0};

// No other thread has had it.
struct ThreadNumber {
  const std::uint64_t value = last_number.fetch_add(1, std::memory_order_relaxed);
};

}  // namespace

void AsyncCopies::finish(std::uint64_t thread, Ranks::iterator copy, const Status& status) {
  MutexLock lock(mutex_);
  const auto found = pending_.find(thread);
  Pending& pending = found->second;
  if (pending.failure.is_ok()) pending.failure = status;
  pending.left.erase(copy);
  if (!pending.left.empty()) return;
  if (pending.failure.is_ok()) pending_.erase(found);
  changed_.notify_all();
}

Status AsyncCopies::begin(std::set<std::uint32_t> ranks, std::function<Status()> copy) {
  const std::uint64_t thread = thread_object<ThreadNumber>().value;
  Ranks::iterator place;
  {
    MutexLock lock(mutex_);
    Ranks& left = pending_[thread].left;
    place = left.insert(left.end(), std::move(ranks));
  }
  Stream& stream = streams_[next_.fetch_add(1, std::memory_order_relaxed) % streams_used_];
  Status status;
  try {
    status = stream.submit([this, thread, place, work = std::move(copy)] {
      finish(thread, place, caught(work));
      return Status::ok();
    });
  } catch (const std::bad_alloc&) {
    finish(thread, place, Status::ok());
    throw;
  }
  if (!status.is_ok()) finish(thread, place, Status::ok());
  return status;
}

Status AsyncCopies::wait(Deadline deadline) {
  const std::uint64_t thread = thread_object<ThreadNumber>().value;
  MutexLock lock(mutex_);
  const auto left = [&]() MEMSPAN_REQUIRES(mutex_) -> const Ranks* {
    const auto found = pending_.find(thread);
    return found == pending_.end() || found->second.left.empty() ? nullptr : &found->second.left;
  };
  while (left() != nullptr)
    if (!wait_interruptibly(changed_, mutex_, deadline) && left() != nullptr)
      return end_of_wait(
          fmt::format("copies of this thread are still under way, the oldest with rank {}",
                      fmt::join(left()->front(), ", ")));
  const auto done = pending_.extract(thread);
  return done.empty() ? Status::ok() : std::move(done.mapped().failure);
}

}  // namespace memspan
