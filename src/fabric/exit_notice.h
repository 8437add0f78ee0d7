// SPDX-License-Identifier: Apache-2.0
// Global exit: a process announces a status. Every process that listens gets one call with the
// first status announced. All of them watch one key of the store.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "fabric/member.h"

namespace memspan {

// Thread-safe.
class ExitNotice {
 public:
  using Call = std::function<void(int status)>;

  // All members give the same key.
  ExitNotice(std::shared_ptr<Member> member, std::string key)
      : member_(std::move(member)), key_(std::move(key)) {}
  // A call that has begun continues.
  ~ExitNotice();
  ExitNotice(const ExitNotice&) = delete;
  ExitNotice& operator=(const ExitNotice&) = delete;

  // Makes the call on a thread of its own, at once if a status was announced before. The call may
  // do anything, even destroy this object. kUnavailable: this process listens already.
  Status listen(Call call, Deadline deadline) MEMSPAN_EXCLUDES(mutex_);
  // Ok also if another process announced first.
  Status announce(int status, Deadline deadline);

 private:
  // Used by the watcher, which may outlive a failed listen().
  struct Listener {
    Call call;
    std::atomic<bool> was_called{false};
    void hear(const std::string& status);
  };

  const std::shared_ptr<Member> member_;  // shared with what else this process has at the store
  const std::string key_;
  Mutex mutex_;
  std::optional<std::uint64_t> watch_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan
