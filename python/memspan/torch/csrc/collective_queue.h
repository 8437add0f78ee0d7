// SPDX-License-Identifier: Apache-2.0
// Runs a group's collectives one at a time, in the order of the calls.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "group_works.h"

namespace memspan::tensors {

// The turn: the thread that has it runs a collective. A caller gets it when nothing is queued or
// running. Otherwise a thread of the group runs the collective later.
//
//   caller ── gets the turn ── runs it ── gives up the turn
//      └───── add() ──> tasks_ ──> a thread: takes the turn, runs the first, gives up the turn,
//                                  wakes who waits, runs callbacks
//
// Callbacks run without the turn, and may start collectives and wait for them in whatever way:
// while a thread is in callbacks another one runs what is in the queue. Threads are started when a
// task has none: one more than the callbacks that wait inside each other.
class CollectiveQueue {
 public:
  struct Task {
    c10::intrusive_ptr<Collective> work;
    std::function<void()> run;
  };

  CollectiveQueue() = default;
  CollectiveQueue(const CollectiveQueue&) = delete;
  CollectiveQueue& operator=(const CollectiveQueue&) = delete;
  ~CollectiveQueue() { stop(); }

  // The turn, if the caller gets it.
  class Turn {
   public:
    explicit Turn(CollectiveQueue& queue) : queue_(queue), is_mine_(queue.try_enter()) {}
    ~Turn() { give_up(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return is_mine_; }
    void give_up() {
      if (std::exchange(is_mine_, false)) queue_.leave();
    }

   private:
    friend class CollectiveQueue;
    CollectiveQueue& queue_;
    bool is_mine_;
  };

  // A caller that has the turn gives it up, and the task becomes the next one.
  void add(Task task, Turn& turn) {
    std::lock_guard lock(mutex_);
    if (std::exchange(turn.is_mine_, false)) {
      has_turn_ = false;
      tasks_.push_front(std::move(task));
    } else {
      tasks_.push_back(std::move(task));
    }
    call_thread();
  }
  // Nobody runs a collective, and none is left to run.
  bool is_idle() {
    std::lock_guard lock(mutex_);
    return !has_turn_ && tasks_.empty();
  }
  // Waits until that is so; false after `patience`, or when `is_interrupted` returns nonzero.
  bool becomes_idle(Milliseconds patience, int (*is_interrupted)()) {
    constexpr auto kBetweenLooks = Milliseconds(1);
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!is_idle()) {
      if (is_interrupted() != 0 || std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(kBetweenLooks);
    }
    return true;
  }
  // After everything that was added. Not from a callback, whose thread is waited for.
  void stop() {
    std::unique_lock lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
    while (!threads_.empty()) {
      std::thread thread = std::move(threads_.back());
      threads_.pop_back();
      lock.unlock();
      thread.join();  // its callbacks may start another
      lock.lock();
    }
  }

 private:
  bool try_enter() {
    std::lock_guard lock(mutex_);
    if (has_turn_ || !tasks_.empty()) return false;
    has_turn_ = true;
    return true;
  }
  void leave() {
    std::lock_guard lock(mutex_);
    has_turn_ = false;
    call_thread();
  }
  // With mutex_, after every change: a task that could run has a thread. One that waits is enough,
  // as it goes on with the others; those that do not wait are in callbacks.
  void call_thread() {
    if (has_turn_ || tasks_.empty()) return;
    if (waiting_ == 0)
      threads_.emplace_back([this] { work(); });
    else
      changed_.notify_one();
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto has_task = [&] { return !has_turn_ && !tasks_.empty(); };
      ++waiting_;
      changed_.wait(lock, [&] { return has_task() || (is_stopping_ && tasks_.empty()); });
      --waiting_;
      if (!has_task()) return;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      if (is_stopping_ && tasks_.empty()) changed_.notify_all();  // threads that may end now
      has_turn_ = true;
      lock.unlock();
      task.work->run(task.run);
      task.run = nullptr;  // what it holds is given back before the collective is over
      lock.lock();
      has_turn_ = false;
      lock.unlock();
      if (const FuturePtr future = task.work->end()) {
        // Callbacks may wait for what is in the queue. Without them this thread is back at once.
        lock.lock();
        call_thread();
        lock.unlock();
        task.work->mark(*future);
      }
      task.work.reset();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool has_turn_ = false;  // somebody runs a collective
  int waiting_ = 0;        // threads that wait for a task, or have been called to one
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace memspan::tensors
