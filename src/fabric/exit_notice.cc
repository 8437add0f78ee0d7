// SPDX-License-Identifier: Apache-2.0
#include "fabric/exit_notice.h"

#include <system_error>
#include <thread>

#include "core/environment.h"

namespace memspan {

ExitNotice::~ExitNotice() {
  MutexLock lock(mutex_);
  if (watch_)
    member_->tell_end([&, watch = *watch_](const Deadline& deadline) {
      return member_->store().unwatch(watch, deadline);
    });
}

Status ExitNotice::listen(Call call, Deadline deadline) {
  MutexLock lock(mutex_);
  if (watch_) return {Code::kUnavailable, "this process listens for the exit already"};
  auto listener = std::make_shared<Listener>();  // shared with the watcher
  listener->call = std::move(call);
  auto watch = member_->store().watch(
      key_,
      [listener](const StoreChange& change) {
        if (change.event == StoreEvent::kSet) listener->hear(change.value);
      },
      deadline);
  if (!watch.is_ok()) return watch.status().annotate("listening for the exit");
  watch_ = *watch;
  if (auto before = member_->store().get_now(key_, deadline); before.is_ok())
    listener->hear(*before);
  return Status::ok();
}

// The key is under the announcer's lease, so that nothing is left at the store.
Status ExitNotice::announce(int status, Deadline deadline) {
  auto announced = member_->store().compare_and_swap(key_, "", std::to_string(status), deadline,
                                                     KeyLife::kLease);
  return announced.is_ok() ? Status::ok() : announced.status().annotate("announcing the exit");
}

void ExitNotice::Listener::hear(const std::string& text) {
  const auto status = parse_integer("the exit's status", text, INT32_MIN, INT32_MAX);
  if (!status.is_ok() || was_called.exchange(true, std::memory_order_relaxed)) return;
  try {
    std::thread([call = call, code = static_cast<int>(*status)] { call(code); }).detach();
  } catch (const std::system_error&) {  // no thread can be had
    call(static_cast<int>(*status));
  }
}

}  // namespace memspan
