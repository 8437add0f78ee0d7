// SPDX-License-Identifier: Apache-2.0
// A member of a memspan group as a backend of torch.distributed: its joining and its end, and the
// works and the order of its collectives. What each collective moves is in process_group.cc.
//
// A synchronous collective runs on the calling thread. So does an asynchronous one when all members
// call it at about the same time. Otherwise a progress thread of the group runs it, and those
// behind it, in the order of the calls (collective_queue.h). Point-to-point messages make progress
// in every wait for one of them, and in a second thread while no thread waits.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <memspan/group.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "collective_operators.h"
#include "collective_queue.h"
#include "dense_tensors.h"
#include "group_works.h"
#include "interrupts.h"
#include "live_groups.h"
#include "shared_group.h"
#include "store_exchange.h"

namespace memspan::tensors {

// The calls of the derived class are works of collective() or of message().
class GroupBackend : public SharingBackend {
 public:
  GroupBackend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, Milliseconds limit)
      : SharingBackend(rank, size),
        channel_(std::make_shared<Channel>(join(store, rank, size, limit))),
        options_(c10::make_intrusive<Options>("memspan", limit)) {
    BackendsByName::forget_all();
  }
  ~GroupBackend() override {
    end([] { return 0; });
  }

  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void setTimeout(Milliseconds limit) override {
    check(memspan_group_set_timeout(group(), milliseconds(limit)));
    options_->timeout = limit;
  }
  void shutdown() override {
    end(run_signal_functions);
    throw_if_interrupted();
  }
  // Ends what waits in the group, here and at the members that need this one.
  void abort() final {
    if (!channel_->is_closed()) memspan_group_leave(channel_->group);
  }

  std::shared_ptr<const GroupHandle> share_group() override {
    auto handle = channel_->handle();
    TORCH_CHECK_WITH(DistBackendError, handle != nullptr, kShutDown);
    return handle;
  }
  bool run_at_once(c10::function_ref<void(memspan_group_t)> collective) override {
    const Interruptible interruptible;
    const CollectiveQueue::Turn turn(queue_);
    if (!turn) return false;
    ++sequence_;
    collective(group());
    return true;
  }
  void run_in_order(std::function<void()> task) override {
    const WorkPtr work =
        collective(OpType::UNKNOWN, false, {}, {}, std::move(task), Arrives::kNever);
    if (work) work->wait(kNoTimeout);
  }

 protected:
  Milliseconds limit() const { return options_->timeout; }
  memspan_group_t group() const {
    TORCH_CHECK_WITH(DistBackendError, !channel_->is_closed(), kShutDown);
    return channel_->group;
  }

  // Whether this member says that it has come: not at collectives that no member calls
  // asynchronously, so that no caller asks.
  enum class Arrives { kAlways, kNever };

  // Null if the collective is synchronous and this thread has done it, unless needs_work() or a
  // profiler looks: torch.distributed then waits for nothing and makes no object of Python. One
  // shared work for all calls saved half as much.
  template <typename Task>
  WorkPtr collective(OpType type, bool is_async, const Tensors& inputs, const Tensors& outputs,
                     Task task, Arrives arrives = Arrives::kAlways) {
    ++sequence_;
    const Interruptible interruptible;
    const memspan_group_t group = this->group();
    const char* const title = title_if_profiled(type);
    CollectiveQueue::Turn turn(queue_);
    const auto arrive = [group, arrives] {
      if (arrives == Arrives::kAlways) check(memspan_group_arrive(group));
    };
    if (turn) arrive();
    if (turn && !is_async && title == nullptr && !needs_work(type)) {
      task();
      return nullptr;
    }
    auto work = c10::make_intrusive<Collective>(rank_, type, outputs, title, inputs);
    const bool is_now =
        turn && (!is_async || memspan_group_wait_for_arrivals(group, patience_us()) == SMEM_OK);
    if (is_now) work->run(std::ref(task));
    if (turn && is_async) last_ = Clock::now();
    if (is_now) {
      turn.give_up();
      work->end();  // no caller has it or its future yet
      return work;
    }
    const bool has_arrived{turn};
    // The task computes as the caller would: in inference mode, without gradients.
    queue_.add({work,
                [arrive, has_arrived, state = at::ThreadLocalState(), task = std::move(task)] {
                  if (!has_arrived) arrive();
                  const at::ThreadLocalStateGuard as_the_caller(state);
                  task();
                }},
               turn);
    return work;
  }

  WorkPtr message(OpType type, memspan_group_request_t request, Tensor tensor,
                  std::unique_ptr<ToWrite> result) {
    return c10::make_intrusive<MessageWork>(rank_, type, title_if_profiled(type), channel_, request,
                                            std::move(tensor), std::move(result));
  }

 private:
  static constexpr const char* kShutDown = "the process group has been shut down";
  using Clock = std::chrono::steady_clock;

  // A collective is work for the processor: once all members are there it is quicker to do it at
  // once than beside the computation. A caller waits for the others no longer than this...
  static constexpr uint32_t kPatienceUs = 5000;
  // ... or, if the threads of this host's members take all cores, than a quarter of the time since
  // its last asynchronous collective: the later members that compute alike come, the longer they
  // computed.
  static constexpr uint32_t kMostPatienceUs = 100'000;
  static constexpr int kComputedToPatience = 4;

  // How many ranks the launcher started on this host, if it says that, else all.
  int ranks_here() const {
    const char* const text = std::getenv("LOCAL_WORLD_SIZE");  // NOLINT(concurrency-mt-unsafe)
    const long ranks = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
    return ranks > 0 && ranks < size_ ? static_cast<int>(ranks) : size_;
  }
  // With the turn.
  uint32_t patience_us() const {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0 ||
        at::get_num_threads() * ranks_here() < CPU_COUNT(&cores))
      return kPatienceUs;
    const auto since = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - last_);
    return static_cast<uint32_t>(
        std::clamp<int64_t>(since.count() / kComputedToPatience, kPatienceUs, kMostPatienceUs));
  }

  // Whether PyTorch would crash without a work. Between torch.compile's regions it can keep each
  // collective's work for a later wait. PyTorch 2.13 has two names for three collectives. If a
  // process group written in Python defines only the old name, PyTorch uses the work unchecked.
  static bool needs_work(OpType type) {
    switch (type) {
      case OpType::COALESCED:  // allgather_into_tensor_coalesced
      case OpType::REDUCE_SCATTER_TENSOR_COALESCED:
      case OpType::ALLTOALL_BASE:
        return true;
      default:
        return c10d::allow_inflight_collective_as_graph_input();
    }
  }

  static std::shared_ptr<const GroupHandle> join(const c10::intrusive_ptr<c10d::Store>& store,
                                                 int rank, int size, Milliseconds limit) {
    const Members members{rank, size, store, limit};
    StoreExchange exchange(members, "process_group");
    memspan_group_t group = nullptr;
    const Interruptible interruptible;
    const int32_t code = memspan_group_create(rank, size, StoreExchange::call, &exchange,
                                              milliseconds(limit), &group);
    if (code != SMEM_OK) throw_if_interrupted();
    TORCH_CHECK_WITH(DistBackendError, exchange.failure().empty(), "joining: ", exchange.failure());
    check(code);
    return std::make_shared<const GroupHandle>(group);
  }

  // Ends the group with its collectives, or without those whose members do not come. The works of
  // these fail.
  void end(int (*is_interrupted)()) {
    constexpr auto kPatience = std::chrono::seconds(3);
    BackendsByName::forget_all();
    if (!queue_.becomes_idle(kPatience, is_interrupted)) {
      TORCH_WARN("memspan: rank ", rank_, " destroys a process group with collectives under way, ",
                 "which fail: other ranks have not joined them");
      abort();
    }
    queue_.stop();
    channel_->close();
  }

  std::shared_ptr<Channel> channel_;  // owners: this and the works of messages
  c10::intrusive_ptr<Options> options_;
  CollectiveQueue queue_;
  Clock::time_point last_;  // of the last asynchronous collective; with the turn
  std::atomic<uint64_t> sequence_ = 0;
  const LiveGroup live_{[this] { return queue_.is_idle(); }, [this] { abort(); }};
};

}  // namespace memspan::tensors
