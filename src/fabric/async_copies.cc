// SPDX-License-Identifier: Apache-2.0
#include "fabric/async_copies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "core/interrupt.h"
#include "core/lifetime.h"
#include "core/thread.h"

namespace memspan {
namespace {

std::atomic<std::uint64_t> last_number{0};

}  // namespace

AsyncCopies::AsyncCopies()
    : number_(last_number.fetch_add(1, std::memory_order_relaxed) + 1),  // unique, no more
      streams_used_(
          std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 1, kMostStreams)) {}

// Shared by the thread and the copies that are under way; an entry of an object that is gone has no
// other user and is dropped.
std::shared_ptr<AsyncCopies::Pending> AsyncCopies::pending_of_this_thread(bool is_to_be_made) {
  struct PendingOfThread {
    std::map<std::uint64_t, std::shared_ptr<Pending>> of_object;
  };
  auto& of_this_thread = thread_object<PendingOfThread>().of_object;
  const auto found = of_this_thread.find(number_);
  if (found != of_this_thread.end()) return found->second;
  if (!is_to_be_made) return nullptr;
  constexpr std::size_t kMany = 64;
  if (of_this_thread.size() >= kMany)
    std::erase_if(of_this_thread, [](const auto& entry) {
      MutexLock lock(entry.second->mutex);
      return entry.second->left.empty() && entry.second->failure.is_ok();
    });
  return of_this_thread[number_] = std::make_shared<Pending>();
}

void AsyncCopies::Pending::finish(std::list<std::set<std::uint32_t>>::iterator copy,
                                  const Status& status) {
  MutexLock lock(mutex);
  if (failure.is_ok()) failure = status;
  left.erase(copy);
  if (left.empty()) changed.notify_all();
}

Status AsyncCopies::begin(std::set<std::uint32_t> ranks, std::function<Status()> copy) {
  const std::shared_ptr<Pending> pending = pending_of_this_thread(true);
  std::list<std::set<std::uint32_t>>::iterator place;
  {
    MutexLock lock(pending->mutex);
    place = pending->left.insert(pending->left.end(), std::move(ranks));
  }
  Stream& stream = streams_[next_.fetch_add(1, std::memory_order_relaxed) % streams_used_];
  Status status = caught([&] {
    return stream.submit([pending, place, work = std::move(copy)] {
      pending->finish(place, caught(work));
      return Status::ok();
    });
  });
  if (!status.is_ok()) pending->finish(place, Status::ok());
  return status;
}

Status AsyncCopies::wait(Deadline deadline) {
  const std::shared_ptr<Pending> pending = pending_of_this_thread(false);
  if (pending == nullptr) return Status::ok();
  MutexLock lock(pending->mutex);
  while (!pending->left.empty())
    if (!wait_interruptibly(pending->changed, pending->mutex, deadline) && !pending->left.empty())
      return end_of_wait(
          fmt::format("copies of this thread are still under way, the oldest with rank {}",
                      fmt::join(pending->left.front(), ", ")));
  return std::exchange(pending->failure, Status::ok());
}

}  // namespace memspan
