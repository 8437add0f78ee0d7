// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/name_claim.h"

#include <fmt/format.h>

#include "core/interrupt.h"
#include "core/mutex.h"

namespace memspan::transfer {
namespace {

// A process on this host answers at once, or is stopped and so alive.
constexpr Duration kAnswerPatience = std::chrono::seconds(2);
// The store gives up a silent member on another host after 3 s.
constexpr Duration kDeathPatience = std::chrono::seconds(5);

// Set by the watch at the store, on a thread of the client; shared with it.
struct Removal {
  Mutex mutex;
  ConditionVariable changed;
  bool has_come MEMSPAN_GUARDED_BY(mutex) = false;
};

// On another host nobody can be asked.
bool may_be_dead(Member& member, const EndpointRecord& holder, const Deadline& deadline) {
  if (!member.is_near(holder.who)) return true;
  const auto answer = member.broker().fetch_and_wait(holder.broker_address, holder.published_name(),
                                                     deadline.within(kAnswerPatience));
  return answer.code() == Code::kUnavailable || answer.code() == Code::kNotFound;
}

// Ok once it is removed, or soon.
Status wait_for_removal(KeyValueStore& store, const std::string& key, const Deadline& deadline) {
  const auto removal = std::make_shared<Removal>();
  MEMSPAN_TRY_ASSIGN(const std::uint64_t watch,
                     store.watch(
                         key,
                         [removal](const StoreChange&) {
                           MutexLock lock(removal->mutex);
                           removal->has_come = true;
                           removal->changed.notify_all();
                         },
                         deadline),
                     "watching a name");
  Status status;
  // It may have gone before the watch began.
  if (store.get_now(key, deadline).code() != Code::kNotFound) {
    MutexLock lock(removal->mutex);
    while (!removal->has_come && status.is_ok())
      if (!wait_interruptibly(removal->changed, removal->mutex, deadline) && !removal->has_come)
        status = end_of_wait("it was not given up");
  }
  [[maybe_unused]] const Status over = store.unwatch(watch, deadline);
  return status;
}

}  // namespace

Status claim_name(Member& member, const EndpointRecord& record, Deadline deadline) {
  const std::string key = record_key(record.name);
  const std::string mine = encode(record);
  const Deadline patience = deadline.within(kDeathPatience);
  while (true) {
    auto got = member.store().compare_and_swap(key, "", mine, deadline, KeyLife::kLease);
    if (!got.is_ok())
      return got.status().annotate(fmt::format("claiming the name {}", record.name));
    if (*got == mine) return Status::ok();
    const auto holder = decode_record(*got);
    if (!holder.is_ok()) return holder.status();
    if (may_be_dead(member, *holder, patience) &&
        wait_for_removal(member.store(), key, patience).is_ok())
      continue;
    return {Code::kUnavailable,
            fmt::format("process {} has an endpoint {} already", holder->who.process, record.name)};
  }
}

}  // namespace memspan::transfer
