// SPDX-License-Identifier: Apache-2.0
// A name at the store, which one living process has at a time. The claim outlives the store: when
// the store comes back, the record is written again. If another process has the name by then, that
// is logged once, and the name comes back when that process ends.
#pragma once

#include "core/log.h"
#include "fabric/member.h"
#include "fabric/transfer/endpoint_record.h"
#include "store/recipes/change_queue.h"

namespace memspan::transfer {

// Thread-safe, except for its end.
class NameClaim : NotCopyable {
 public:
  // Writes the record under the lease of the member's session. kUnavailable: a living process has
  // the name. Waits a few seconds for one that has just died, until the store learns of it.
  static Result<std::unique_ptr<NameClaim>> take(std::shared_ptr<Member> member,
                                                 const EndpointRecord& record, Deadline deadline) {
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
  // Gives the name up. If the store is away, the name ends with the session.
  ~NameClaim() {
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
      MEMSPAN_TRY_ASSIGN(const std::string bytes, store.get_now(key, deadline),
                         "giving up the name");
      const auto holder = decode_record(bytes);
      if (!holder.is_ok() || holder->generation != record.generation) return Status::ok();
      return store.remove(key, deadline).status();
    });
  }

 private:
  // A process on this host answers at once, or is stopped and so alive.
  static constexpr Duration kAnswerPatience = std::chrono::seconds(2);
  // The store gives up a silent member on another host after 3 s.
  static constexpr Duration kDeathPatience = std::chrono::seconds(5);
  // For answers that a reachable store gives at once.
  static constexpr Duration kRenewalPatience = std::chrono::seconds(2);
  // How often a claim is repeated after the loss of the store has cut it short.
  static constexpr int kMostInterruptions = 8;

  // The mutex is held during a write into a session. No thread that needs it holds that write up.
  struct State {
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
  NameClaim(std::shared_ptr<Member> member, std::shared_ptr<State> state)
      : member_(std::move(member)), state_(std::move(state)) {}
  // A process on another host cannot be asked.
  static bool may_be_dead(Member& member, const EndpointRecord& holder, const Deadline& deadline) {
    if (!member.is_near(holder.who)) return true;
    const auto answer = member.broker().fetch_and_wait(
        holder.broker_address, holder.published_name(), deadline.within(kAnswerPatience));
    return answer.code() == Code::kUnavailable || answer.code() == Code::kNotFound;
  }
  // Ok once it is removed, or soon.
  static Status wait_for_removal(KeyValueStore& store, const std::string& key,
                                 const Deadline& deadline) {
    ChangeQueue changes(store);
    MEMSPAN_TRY(changes.watch(key, deadline), "watching a name");
    // It may have gone before the watch began.
    if (store.get_now(key, deadline).code() == Code::kNotFound || changes.pop(deadline))
      return Status::ok();
    return end_of_wait("it was not given up");
  }
  // Writes the record under the session's lease, if the key is free or has a record of the same
  // endpoint, also one of an earlier session. Returns the record that has the name then.
  static Result<EndpointRecord> write(KeyValueStore& session, const EndpointRecord& record,
                                      const Deadline& deadline) {
    const std::string key = record_key(record.name);
    const std::string mine = encode(record);
    MEMSPAN_PASS_ASSIGN(std::string now,
                        session.compare_and_swap(key, "", mine, deadline, KeyLife::kLease));
    auto holder = decode_record(now);
    if (!holder.is_ok() || holder->generation != record.generation) return holder;
    MEMSPAN_PASS_ASSIGN(now, session.compare_and_swap(key, now, mine, deadline, KeyLife::kLease));
    return decode_record(now);
  }
  Status claim(const Deadline& deadline) {
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
      return {Code::kUnavailable, fmt::format("process {} has an endpoint {} already",
                                              holder->who.process, record.name)};
    }
    MutexLock lock(state_->mutex);
    state_->has_name = true;
    return Status::ok();
  }
  static Status renew(const std::shared_ptr<State>& state, KeyValueStore& session,
                      const Deadline& deadline) {
    MutexLock lock(state->mutex);
    if (state->is_over) return Status::ok();
    EndpointRecord next = state->record;
    ++next.renewals;
    auto holder = write(session, next, deadline);
    const auto is_another = [&] { return holder.is_ok() && holder->generation != next.generation; };
    if (is_another() && !state->has_name) return Status::ok();  // claim() deals with that
    if (is_another() && state->watched_in != session.lease()) {
      const auto on_change = [state, &session](const StoreChange& change) {
        if (change.event == StoreEvent::kRemoved)
          static_cast<void>(renew(state, session, Deadline::after(kRenewalPatience)));
      };
      MEMSPAN_PASS(session.watch(record_key(next.name), on_change, deadline).status());
      state->watched_in = session.lease();
      holder = write(session, next, deadline);  // it may have become free before the watch began
    }
    if (!holder.is_ok()) {
      if (holder.code() != Code::kStoreLost && holder.code() != Code::kTimeout)
        log_line(
            LogLevel::kError,
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

  const std::shared_ptr<Member> member_;
  const std::shared_ptr<State> state_;  // shared with watches of sessions
  std::uint64_t renewal_ = 0;
};

}  // namespace memspan::transfer
