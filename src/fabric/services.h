// SPDX-License-Identifier: Apache-2.0
// What this process answers to members on other hosts: functions by name, called with a request.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/mutex.h"
#include "core/status.h"

namespace memspan {

// Thread-safe. Outlives the thread that calls answer().
class Services {
 public:
  // Must not wait for another process: it runs where messages of all peers are taken.
  using Service = std::function<Result<std::string>(std::string_view request)>;

  // In place of an earlier one of that name.
  void add(const std::string& name, Service service) MEMSPAN_EXCLUDES(mutex_);
  // No call of it runs after this returned. Not for the service itself.
  void remove(const std::string& name) MEMSPAN_EXCLUDES(mutex_);
  // kNotFound when there is none of that name (any more).
  Result<std::string> answer(const std::string& name, std::string_view request)
      MEMSPAN_EXCLUDES(mutex_);

 private:
  struct Entry {
    Mutex mutex;  // held while it is called
    Service service MEMSPAN_GUARDED_BY(mutex);
  };
  Mutex mutex_;
  // Shared with the call that runs.
  std::map<std::string, std::shared_ptr<Entry>> by_name_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan
