// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/ask.h"

#include <optional>

#include "core/mutex.h"

namespace memspan::transfer {
namespace {

struct Answer {
  Mutex mutex;
  ConditionVariable arrived;
  std::optional<Result<DoorAnswer>> value MEMSPAN_GUARDED_BY(mutex);
};

}  // namespace

Result<DoorAnswer> ask_and_wait(Door& door, const std::string& ticket, std::string_view name,
                                Deadline deadline) {
  // Shared by this caller and the door's thread, whichever is done last.
  const auto answer = std::make_shared<Answer>();
  const std::uint64_t question = door.ask(ticket, name, [answer](Result<DoorAnswer> value) {
    MutexLock lock(answer->mutex);
    answer->value = std::move(value);
    answer->arrived.notify_all();
  });
  {
    MutexLock lock(answer->mutex);
    while (!answer->value && answer->arrived.wait_until(answer->mutex, deadline)) {
    }
  }
  door.forget(question);
  MutexLock lock(answer->mutex);
  if (answer->value) return std::move(*answer->value);
  return Status(Code::kTimeout, "that process does not answer at its door; it may be stopped");
}

}  // namespace memspan::transfer
