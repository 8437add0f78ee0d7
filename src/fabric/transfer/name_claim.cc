// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/name_claim.h"

#include "core/interrupt.h"
#include "core/log.h"

namespace memspan::transfer {
namespace {

// A process on this host answers at once, or is stopped and so alive.
constexpr Duration kAnswerPatience = std::chrono::seconds(2);
// The store gives up a silent member on another host after 3 s.
constexpr Duration kDeathPatience = std::chrono::seconds(5);
// For answers that a reachable store gives at once.
constexpr Duration kRenewalPatience = std::chrono::seconds(2);
// How often a claim is repeated after the loss of the store has cut it short.
constexpr int kMostInterruptions = 8;

// Set by the watch at the store, on a thread of the client; shared with it.
struct Removal {
  Mutex mutex;
  ConditionVariable changed;
  bool has_come MEMSPAN_GUARDED_BY(mutex) = false;
};

// A process on another host cannot be asked.
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

// Writes the record under the session's lease, if the key is free or has a record of the same
// endpoint, also one of an earlier session. Returns the record that has the name then.
Result<EndpointRecord> write(KeyValueStore& session, const EndpointRecord& record,
                             const Deadline& deadline) {
  const std::string key = record_key(record.name);
  const std::string mine = encode(record);
  auto got = session.compare_and_swap(key, "", mine, deadline, KeyLife::kLease);
  if (!got.is_ok()) return got.status();
  auto holder = decode_record(*got);
  if (!holder.is_ok() || holder->generation != record.generation) return holder;
  got = session.compare_and_swap(key, *got, mine, deadline, KeyLife::kLease);
  return got.is_ok() ? decode_record(*got) : Result<EndpointRecord>(got.status());
}

}  // namespace

// The mutex is held during a write into a session. No thread that needs it holds that write up.
struct NameClaim::State {
  explicit State(EndpointRecord mine) : record(std::move(mine)) {}
  EndpointRecord current() MEMSPAN_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return record;
  }

  Mutex mutex;
  EndpointRecord record MEMSPAN_GUARDED_BY(mutex);
  bool has_name MEMSPAN_GUARDED_BY(mutex) = false;  // had it once
  bool is_taken MEMSPAN_GUARDED_BY(mutex) = false;  // by another process; logged
  bool is_over MEMSPAN_GUARDED_BY(mutex) = false;
  std::uint64_t watched_in MEMSPAN_GUARDED_BY(mutex) =
      0;  // the session whose watch reports that it is free
};

Result<std::unique_ptr<NameClaim>> NameClaim::take(std::shared_ptr<Member> member,
                                                   const EndpointRecord& record,
                                                   Deadline deadline) {
  const auto state = std::make_shared<State>(record);
  std::unique_ptr<NameClaim> made(new NameClaim(std::move(member), state));
  // Before the first claim: a session that begins during the claim then also has the record.
  made->renewal_ =
      made->member_->add_renewal({.renew = [state](KeyValueStore& session, Deadline until) {
        return renew(state, session, until);
      }});
  MEMSPAN_PASS(made->claim(deadline));
  return made;
}

Status NameClaim::claim(const Deadline& deadline) {
  const Deadline patience = deadline.within(kDeathPatience);
  int interruptions = 0;
  while (true) {
    const EndpointRecord record = state_->current();
    const auto holder = write(member_->store(), record, deadline);
    if (holder.code() == Code::kStoreLost && !deadline.has_passed() &&
        ++interruptions < kMostInterruptions)
      continue;
    if (!holder.is_ok())
      return holder.status().annotate(fmt::format("claiming the name {}", record.name));
    if (holder->generation == record.generation) break;
    if (may_be_dead(*member_, *holder, patience) &&
        wait_for_removal(member_->store(), record_key(record.name), patience).is_ok())
      continue;
    return {Code::kUnavailable,
            fmt::format("process {} has an endpoint {} already", holder->who.process, record.name)};
  }
  MutexLock lock(state_->mutex);
  state_->has_name = true;
  return Status::ok();
}

Status NameClaim::renew(const std::shared_ptr<State>& state, KeyValueStore& session,
                        const Deadline& deadline) {
  MutexLock lock(state->mutex);
  if (state->is_over) return Status::ok();
  EndpointRecord next = state->record;
  ++next.renewals;
  auto holder = write(session, next, deadline);
  const auto is_another = [&] { return holder.is_ok() && holder->generation != next.generation; };
  if (is_another() && !state->has_name) return Status::ok();  // claim() deals with that
  if (is_another() && state->watched_in != session.lease()) {
    auto watch = session.watch(
        record_key(next.name),
        [state, &session](const StoreChange& change) {
          if (change.event == StoreEvent::kRemoved)
            static_cast<void>(renew(state, session, Deadline::after(kRenewalPatience)));
        },
        deadline);
    if (!watch.is_ok()) return watch.status();
    state->watched_in = session.lease();
    holder = write(session, next, deadline);  // it may have become free before the watch began
  }
  if (!holder.is_ok()) {
    if (holder.code() != Code::kStoreLost && holder.code() != Code::kTimeout)
      log_line(LogLevel::kError,
               fmt::format("endpoint {} is at the store no more, and new peers cannot find it: {}",
                           next.name, holder.status().message()));
    return holder.status();
  }
  if (is_another()) {
    if (!std::exchange(state->is_taken, true))
      log_line(LogLevel::kError,
               fmt::format("endpoint {} has lost its name: {} has taken it while the store was "
                           "away. New peers find that one; transfers from here continue",
                           next.name, holder->who.name()));
    return Status::ok();
  }
  state->record = std::move(next);
  state->has_name = true;
  if (std::exchange(state->is_taken, false))
    log_line(LogLevel::kWarn, fmt::format("endpoint {} has its name again", state->record.name));
  return Status::ok();
}

NameClaim::~NameClaim() {
  EndpointRecord record;
  {
    MutexLock lock(state_->mutex);
    state_->is_over = true;
    if (state_->has_name) record = state_->record;
  }
  member_->remove_renewal(renewal_);
  if (record.name.empty() || !member_->store_state().is_ok()) return;
  member_->tell_end([&](const Deadline& deadline) -> Status {
    KeyValueStore& store = member_->store();
    const std::string key = record_key(record.name);
    MEMSPAN_TRY_ASSIGN(const std::string bytes, store.get_now(key, deadline), "giving up the name");
    const auto holder = decode_record(bytes);
    if (!holder.is_ok() || holder->generation != record.generation) return Status::ok();
    return store.remove(key, deadline).status();
  });
}

}  // namespace memspan::transfer
