// SPDX-License-Identifier: Apache-2.0
// The process groups of this process that have not been shut down. At the end of the process each
// leaves its group, so that waits of the other members end.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace memspan::tensors {

// One of them, from its construction to its destruction.
class LiveGroup {
 public:
  // `is_idle`: no collective of it is queued or running. Both are called by any thread.
  LiveGroup(std::function<bool()> is_idle, std::function<void()> leave)
      : is_idle_(std::move(is_idle)), leave_(std::move(leave)) {
    const std::lock_guard lock(all().mutex);
    all().groups.push_back(this);
  }
  ~LiveGroup() {
    const std::lock_guard lock(all().mutex);
    all().groups.erase(std::find(all().groups.begin(), all().groups.end(), this));
  }
  LiveGroup(const LiveGroup&) = delete;
  LiveGroup& operator=(const LiveGroup&) = delete;

  // Each leaves once it is idle, at the latest after `patience`.
  static void leave_all(std::chrono::milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    const std::lock_guard lock(all().mutex);
    for (const LiveGroup* group : all().groups) {
      while (!group->is_idle_() && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(kBetweenLooks);
      group->leave_();
    }
  }

 private:
  struct All {
    std::mutex mutex;
    std::vector<LiveGroup*> groups;
  };
  // Never destroyed: groups may be after the end of main().
  static All& all() {
    static All* const all = new All;
    return *all;
  }
  static constexpr std::chrono::milliseconds kBetweenLooks{1};

  const std::function<bool()> is_idle_;
  const std::function<void()> leave_;
};

}  // namespace memspan::tensors
