// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/lazy_native.h"

#include <sys/epoll.h>

namespace memspan::ucx {

// Without an epoll it can neither watch the streams, which listening reports.
LazyNative::LazyNative(int streams) : gate_(::epoll_create1(EPOLL_CLOEXEC)) {
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (::epoll_ctl(gate_.get(), EPOLL_CTL_ADD, streams, &event) != 0) gate_.reset();
}

Result<NativeWorker*> LazyNative::worker() {
  if (NativeWorker* const there = worker_.load(std::memory_order_acquire)) return there;
  MutexLock lock(mutex_);
  if (made_ != nullptr) return made_.get();
  if (!failure_.is_ok()) return failure_;  // it is tried once
  auto made = NativeWorker::create(gate_.get());
  if (!made.is_ok()) {
    failure_ = made.status();
    return failure_;
  }
  made_ = std::move(made).value();
  worker_.store(made_.get(), std::memory_order_release);
  return made_.get();
}

Result<std::string> LazyNative::key(std::byte* base, std::size_t bytes) {
  const auto there = worker();
  return there.is_ok() ? (*there)->key(base, bytes) : Result<std::string>(there.status());
}

void LazyNative::retract(std::byte* base, std::size_t bytes) {
  if (NativeWorker* const there = worker_.load(std::memory_order_acquire))
    there->retract(base, bytes);
}

Result<std::unique_ptr<NativeMemory>> LazyNative::open(std::string_view key) {
  const auto there = worker();
  if (!there.is_ok()) return there.status();
  return (*there)->open(key);
}

std::uint64_t LazyNative::registrations() const {
  NativeWorker* const there = worker_.load(std::memory_order_acquire);
  return there == nullptr ? 0 : there->registrations();
}

void LazyNative::progress() {
  if (NativeWorker* const there = worker_.load(std::memory_order_acquire)) there->progress();
}

}  // namespace memspan::ucx
