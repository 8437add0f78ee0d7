// SPDX-License-Identifier: Apache-2.0
// The memspan groups of the process groups that use symmetric memory in this process, by name.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>

#include "torch_group.h"
#include "workspace.h"

namespace memspan::tensors {

class Groups {
 public:
  // Never destroyed: what it would end, the end of the process does.
  static Groups& instance() {
    static Groups* const groups = new Groups;
    return *groups;
  }

  // Both collective the first time.
  std::shared_ptr<const TorchGroup> group(const std::string& name) {
    return with(name, [](Entry& entry) { return entry.group; });
  }
  std::shared_ptr<Workspace> workspace(const std::string& name) {
    return with(name, [](Entry& entry) {
      if (entry.workspace == nullptr) entry.workspace = std::make_shared<Workspace>(entry.group);
      return entry.workspace;
    });
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::shared_ptr<const TorchGroup> group;
    std::shared_ptr<Workspace> workspace;
  };

  template <typename Function>
  std::invoke_result_t<Function, Entry&> with(const std::string& name, Function function) {
    const TorchMembers members = members_of(name);
    const WithoutGil without_gil;
    Entry& entry = entry_of(name);
    const std::lock_guard lock(entry.mutex);
    if (entry.group == nullptr || !entry.group->is_of(members)) {
      entry.workspace.reset();
      entry.group.reset();
      forget_ended();
      entry.group = std::make_shared<TorchGroup>(name, members);
    }
    return function(entry);
  }

  Entry& entry_of(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return entries_[name];
  }

  // Gives back what groups have whose process groups are gone.
  void forget_ended() {
    const std::lock_guard lock(mutex_);
    for (auto& [name, entry] : entries_) {
      const std::unique_lock entry_lock(entry.mutex, std::try_to_lock);
      if (!entry_lock.owns_lock() || entry.group == nullptr || !entry.group->has_ended()) continue;
      entry.workspace.reset();
      entry.group.reset();
    }
  }

  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // which stay where they are
};

}  // namespace memspan::tensors
