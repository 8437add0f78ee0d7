// SPDX-License-Identifier: Apache-2.0
// Services of this process for members on other hosts: functions by name that take a request.
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
  // Must not wait for another process: it runs on a thread that takes the messages of all peers.
  using Service = std::function<Result<std::string>(std::string_view request)>;

  // Replaces an earlier service of that name.
  void add(const std::string& name, Service service) MEMSPAN_EXCLUDES(mutex_);
  // Afterwards no call of the service runs. A service must not remove itself.
  void remove(const std::string& name) MEMSPAN_EXCLUDES(mutex_);
  // kNotFound: no service has that name (any more).
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
