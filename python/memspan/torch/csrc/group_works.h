// SPDX-License-Identifier: Apache-2.0
// Works: what torch.distributed waits for. And the thread that makes a group's messages progress
// while nobody waits for one.
#pragma once

#include <ATen/ThreadLocalState.h>
#include <ATen/record_function.h>
#include <memspan/group.h>
#include <memspan/memspan.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "dense_tensors.h"
#include "interrupts.h"
#include "shared_group.h"

namespace memspan::tensors {

using c10d::OpType;
using c10d::Work;
using Milliseconds = std::chrono::milliseconds;
using WorkPtr = c10::intrusive_ptr<Work>;

// Throws what a code of memspan/group.h stands for.
inline void check(int32_t code) {
  if (code == SMEM_OK) return;
  throw_if_interrupted();
  TORCH_CHECK_WITH(DistBackendError, code != SMEM_TIMEOUT, "memspan: Timed out in ",
                   memspan_last_error());
  TORCH_CHECK_VALUE(code != SMEM_INVALID_PARAM, memspan_last_error());
  C10_THROW_ERROR(DistBackendError, memspan_last_error());
}

inline uint32_t milliseconds(Milliseconds limit) {
  return static_cast<uint32_t>(std::clamp<int64_t>(limit.count(), 1, UINT32_MAX - 1));
}

// What profilers call an operation, as with gloo.
inline const char* title_of(OpType type) {
  switch (type) {
    case OpType::BROADCAST:
      return "memspan:broadcast";
    case OpType::ALLREDUCE:
    case OpType::ALLREDUCE_COALESCED:
      return "memspan:all_reduce";
    case OpType::_ALLREDUCE_SPARSE:
      return "memspan:sparse_all_reduce";
    case OpType::REDUCE:
      return "memspan:reduce";
    case OpType::ALLGATHER:
    case OpType::ALLGATHER_COALESCED:
      return "memspan:all_gather";
    case OpType::_ALLGATHER_BASE:
    case OpType::COALESCED:
      return "memspan:all_gather_into_tensor";
    case OpType::GATHER:
      return "memspan:gather";
    case OpType::SCATTER:
      return "memspan:scatter";
    case OpType::REDUCE_SCATTER:
      return "memspan:reduce_scatter";
    case OpType::_REDUCE_SCATTER_BASE:
    case OpType::REDUCE_SCATTER_TENSOR_COALESCED:
      return "memspan:reduce_scatter_tensor";
    case OpType::ALLTOALL_BASE:
    case OpType::ALLTOALL:
      return "memspan:all_to_all";
    case OpType::SEND:
      return "memspan:send";
    case OpType::RECV:
      return "memspan:recv";
    case OpType::RECVANYSOURCE:
      return "memspan:recvAnySource";
    case OpType::BARRIER:
      return "memspan:barrier";
    default:
      return "memspan:unknown";
  }
}

inline std::optional<Tensors> if_profiled(const char* title, const Tensors& inputs) {
  return title == nullptr ? std::nullopt : std::optional<Tensors>(inputs);
}

// Its title when a profiler looks, else null.
inline const char* title_if_profiled(OpType type) {
  const bool is_profiled = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE).has_value();
  return is_profiled ? title_of(type) : nullptr;
}

using c10::ivalue::Future;
using FuturePtr = c10::intrusive_ptr<Future>;

inline FuturePtr future_of_tensors() {
  return c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()));
}

// A collective that is over, or that a thread of the group will do.
class Collective final : public Work {
 public:
  // `title` and `inputs` are for profilers; null when none looks.
  Collective(int rank, OpType type, Tensors outputs, const char* title, const Tensors& inputs)
      : Work(rank, type, title, if_profiled(title, inputs)), outputs_(std::move(outputs)) {}

  void run(const std::function<void()>& task) {
    try {
      task();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  // After run(): wakes who waits. The future that somebody has asked for, which is to be given to
  // mark(); else none.
  FuturePtr end() {
    finish(failure_);
    std::lock_guard lock(mutex_);
    is_over_ = true;
    return future_;
  }
  // Runs the future's callbacks, which may start collectives and wait for them.
  void mark(Future& future) const {
    if (failure_)
      future.setErrorIfNeeded(failure_);
    else
      future.markCompleted(c10::IValue(outputs_));
  }
  std::vector<Tensor> result() override { return outputs_; }
  // As Work::wait(), with looks at signals.
  bool wait(Milliseconds timeout) override {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const bool has_limit = timeout != kNoTimeout;
    for (bool is_over = false; !is_over;) {
      {
        std::unique_lock lock(mutex_);
        is_over = cv_.wait_for(lock, kSignalPeriod, [&] { return completed_; });
      }
      if (!is_over && run_signal_functions() != 0) throw_if_interrupted();
      is_over = is_over || (has_limit && Clock::now() - begin >= timeout);
    }
    return Work::wait(has_limit ? Milliseconds(1) : timeout);
  }
  FuturePtr getFuture() override {
    std::lock_guard lock(mutex_);
    if (!future_) {
      future_ = future_of_tensors();
      if (is_over_) mark(*future_);
    }
    return future_;
  }

 private:
  Tensors outputs_;
  std::exception_ptr failure_;  // of run()
  bool is_over_ = false;        // with future_, under the mutex of Work
  FuturePtr future_;
};

// ---- messages

// A group and its messages, which their works keep.
class Channel {
 public:
  explicit Channel(std::shared_ptr<const GroupHandle> handle)
      : group(handle->get()), handle_(std::move(handle)) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() { close(); }

  void close() {
    {
      std::lock_guard lock(mutex_);
      if (is_closed_) return;
      is_closed_ = true;
      changed_.notify_all();
    }
    if (helper_.joinable()) helper_.join();
    memspan_group_leave(group);  // symmetric memory may keep it
    std::lock_guard lock(mutex_);
    handle_.reset();
  }
  // Null after close().
  std::shared_ptr<const GroupHandle> handle() {
    std::lock_guard lock(mutex_);
    return handle_;
  }
  bool is_closed() const { return is_closed_.load(std::memory_order_acquire); }

  // A wait makes all messages of the group progress.
  int32_t wait(memspan_group_request_t request, uint32_t timeout_ms) {
    const Interruptible interruptible;
    count_waiters(1);
    const int32_t code = memspan_group_wait(request, timeout_ms);
    count_waiters(-1);
    return code;
  }
  // For a message that nobody may wait for soon.
  void watch(memspan_group_request_t request) {
    std::lock_guard lock(mutex_);
    if (!helper_.joinable()) helper_ = std::thread([this] { help(); });
    watched_.push_back(request);
    changed_.notify_all();
  }
  void forget(memspan_group_request_t request) {
    {
      std::lock_guard lock(mutex_);
      watched_.remove(request);
    }
    memspan_group_request_free(request);
  }

  const memspan_group_t group;

 private:
  static constexpr uint32_t kHelpMs = 20;
  static constexpr auto kPatience = std::chrono::microseconds(500);

  void count_waiters(int more) {
    std::lock_guard lock(mutex_);
    waiters_ += more;
    if (waiters_ == 0) changed_.notify_all();
  }
  void help() {
    std::unique_lock lock(mutex_);
    const auto has_to = [&] { return !watched_.empty() && waiters_ == 0; };
    for (;;) {
      changed_.wait(lock, [&] { return is_closed_ || has_to(); });
      if (is_closed_) return;
      // Most are waited for at once.
      changed_.wait_for(lock, kPatience, [&] { return is_closed(); });
      if (is_closed_ || !has_to()) continue;
      const memspan_group_request_t request = watched_.front();
      lock.unlock();
      // It may be forgotten meanwhile, which is a failure here and nothing else.
      const int32_t code = memspan_group_wait(request, kHelpMs);
      lock.lock();
      if (code != SMEM_TIMEOUT) watched_.remove(request);
    }
  }

  std::mutex mutex_;
  std::shared_ptr<const GroupHandle> handle_;  // null when closed
  std::condition_variable changed_;
  std::list<memspan_group_request_t> watched_;
  int waiters_ = 0;
  std::atomic<bool> is_closed_ = false;  // written under the mutex; a collective reads it twice
  std::thread helper_;
};

class MessageWork final : public Work {
 public:
  MessageWork(int rank, OpType type, const char* title, std::shared_ptr<Channel> channel,
              memspan_group_request_t request, Tensor tensor, std::unique_ptr<ToWrite> result)
      : Work(rank, type, title, title == nullptr ? std::nullopt : if_profiled(title, {tensor})),
        channel_(std::move(channel)),
        request_(request),
        tensor_(std::move(tensor)),
        result_(std::move(result)) {
    if (result_ && result_->is_copy()) state_.emplace();
    if (memspan_group_test(request_) == MEMSPAN_GROUP_PENDING) channel_->watch(request_);
  }
  ~MessageWork() override { channel_->forget(request_); }

  bool isCompleted() override { return look(memspan_group_test(request_)); }
  bool isSuccess() const override {
    std::lock_guard lock(mutex_);
    return completed_ && !exception_;
  }
  bool wait(Milliseconds timeout) override {
    const uint32_t limit = timeout == kNoTimeout ? 0 : milliseconds(timeout);  // 0: the group's
    int32_t code = memspan_group_test(request_);
    if (code == MEMSPAN_GROUP_PENDING) code = channel_->wait(request_, limit);
    if (code == SMEM_TIMEOUT) check(code);  // pending as before
    look(code);
    std::lock_guard lock(mutex_);
    if (exception_) std::rethrow_exception(exception_);
    return true;
  }
  int sourceRank() const override { return memspan_group_sender(request_); }
  std::vector<Tensor> result() override { return {tensor_}; }
  // Completed by waiting, which is all that futures of messages are asked for.
  FuturePtr getFuture() override {
    auto future = future_of_tensors();
    try {
      wait(kNoTimeout);
      future->markCompleted(c10::IValue(result()));
    } catch (...) {
      future->setErrorIfNeeded(std::current_exception());
    }
    return future;
  }

 private:
  bool look(int32_t code) {
    if (code == MEMSPAN_GROUP_PENDING) return false;
    std::exception_ptr failure;
    try {
      check(code);
    } catch (...) {
      failure = std::current_exception();
    }
    std::lock_guard lock(mutex_);
    if (completed_) return true;
    try {
      if (!failure && state_) {
        const at::ThreadLocalStateGuard as_the_caller(*state_);
        result_->finish();
      }
    } catch (...) {
      failure = std::current_exception();
    }
    exception_ = failure;
    completed_ = true;
    if (recordFunctionEndCallback_) std::exchange(recordFunctionEndCallback_, nullptr)();
    return true;
  }

  std::shared_ptr<Channel> channel_;  // owners: the works and the backend
  memspan_group_request_t request_;
  Tensor tensor_;
  std::unique_ptr<ToWrite> result_;
  std::optional<at::ThreadLocalState> state_;  // of the call, if the result is copied
};

}  // namespace memspan::tensors
