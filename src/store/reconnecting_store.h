// SPDX-License-Identifier: Apache-2.0
// A key-value store whose lease outlives the connection: when the store is lost, a thread connects
// again and again, and what belongs to this member is put into the new session.
//
//                lost                  a session begins
//   connected ─────────► away: attempt ─────────────────► renewing ──► connected
//                          ▲     │ pause                     │ lost
//                          └─────┴───────────────────────────┘
//
// Calls wait for the store until their deadline and then return kStoreLost, which says since when
// and why it is lost and why the last attempt failed; one whose deadline has passed returns that at
// once. What was interrupted by the loss is done again, but for compare_and_swap(), which may have
// been done. Watches go on in the new session; changes meanwhile are told to nobody. What was under
// the lease is gone, and put there again by renewals.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "store/key_value_store.h"

namespace memspan {

// Thread-safe. In a child made by fork() every call returns kForked.
class ReconnectingStore final : public KeyValueStore {
 public:
  struct Options {
    // One attempt to begin a session, on the store's thread. Any failure is tried again.
    std::function<Result<std::unique_ptr<KeyValueStore>>(Deadline)> connect;
    std::string where;  // for messages
    // Between attempts, doubled each time, and a quarter more or less by chance.
    Duration first_pause = std::chrono::milliseconds(100);
    Duration longest_pause = std::chrono::seconds(2);
    // From a return until the others had time to come back, too.
    Duration settling = std::chrono::seconds(5);
  };
  // What belongs to a member. Both are called on the store's thread.
  struct Renewal {
    // Puts it into a session that begins, after the watches and before anybody else's calls. It may
    // not call this object. kStoreLost and kTimeout: the session is given up. Empty: nothing is.
    std::function<Status(KeyValueStore& session, Deadline deadline)> renew;
    // Called when a return is `settling` ago and the session goes on. Empty: nothing is.
    std::function<void()> settle = {};
  };

  // Goes on from a session that has begun.
  static Result<std::unique_ptr<ReconnectingStore>> start(std::unique_ptr<KeyValueStore> first,
                                                          Options options);
  ~ReconnectingStore() override;

  // For all sessions from now on, in the order of their numbers.
  std::uint64_t add_renewal(Renewal renewal) MEMSPAN_EXCLUDES(mutex_);
  // No call of it runs or begins after this returned. Not for renewals.
  void remove_renewal(std::uint64_t renewal) MEMSPAN_EXCLUDES(mutex_);
  // Ok while there is a session; else what a call whose deadline has passed returns.
  Status state() const MEMSPAN_EXCLUDES(mutex_);

  Status set(std::string_view key, std::string_view value, Deadline deadline,
             KeyLife life = KeyLife::kPermanent) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;
  Result<std::string> get_now(std::string_view key, Deadline deadline) override;
  Result<std::string> compare_and_swap(std::string_view key, std::string_view expected,
                                       std::string_view desired, Deadline deadline,
                                       KeyLife life = KeyLife::kPermanent) override;
  Result<bool> remove(std::string_view key, Deadline deadline) override;
  Result<StoreListing> list(std::string_view prefix, Deadline deadline) override;
  Result<std::uint64_t> watch(std::string_view prefix, StoreWatcher watcher,
                              Deadline deadline) override MEMSPAN_EXCLUDES(mutex_);
  // Does not wait for a store that is away.
  Status unwatch(std::uint64_t watch, Deadline deadline) override MEMSPAN_EXCLUDES(mutex_);
  void end() override MEMSPAN_EXCLUDES(mutex_);
  // The first session's, for good.
  std::uint64_t lease() const override { return lease_; }
  const std::string& member() const override { return member_; }

 private:
  class Watch;
  // A session of the store below.
  struct Session {
    std::shared_ptr<KeyValueStore> store;  // shared with the calls that use it now
    std::uint64_t number = 0;
  };
  struct Loss {
    Clock::time_point since;
    Status why;
    std::uint64_t attempts = 0;
    Status last_attempt = {};
  };

  ReconnectingStore(std::unique_ptr<KeyValueStore> first, Options options);
  Status check_process() const;
  // A session that began after that one. kStoreLost at the deadline, and after end().
  Result<Session> await_session(std::uint64_t after, const Deadline& deadline)
      MEMSPAN_EXCLUDES(mutex_);
  // `call(store)` until it gives anything but kStoreLost.
  template <typename Answer, typename Call>
  Answer repeat(const Deadline& deadline, Call call) MEMSPAN_EXCLUDES(mutex_);
  Status loss() const MEMSPAN_REQUIRES(mutex_);

  // The thread's.
  void run();
  Status await_loss(const Session& session);
  void note_loss(const Status& over) MEMSPAN_EXCLUDES(mutex_);
  void note_attempt(const Status& failed) MEMSPAN_EXCLUDES(mutex_);
  bool reconnect();
  Status begin_session(const std::shared_ptr<KeyValueStore>& store);
  Status renew(KeyValueStore& store, const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_);
  Status publish(const std::shared_ptr<KeyValueStore>& store,
                 const std::map<std::uint64_t, std::uint64_t>& watches) MEMSPAN_EXCLUDES(mutex_);
  void settle() MEMSPAN_EXCLUDES(mutex_);
  // Calls one of the renewal's functions, unless it was removed.
  template <typename Call>
  void use_renewal(std::uint64_t number, Call call) MEMSPAN_EXCLUDES(mutex_);
  // False when it was cut short by end().
  bool pause(Duration duration) MEMSPAN_EXCLUDES(mutex_);

  const Options options_;
  const std::string member_;
  const std::uint64_t lease_;
  const pid_t process_;
  Duration next_pause_ = Duration::zero();  // the thread's; zero: the next attempt comes at once
  std::optional<Deadline> settles_ = {};    // the thread's
  mutable Mutex mutex_;
  ConditionVariable changed_;  // a session, its loss, a renewal that has returned, the end
  Session session_ MEMSPAN_GUARDED_BY(mutex_);
  std::optional<Loss> loss_ MEMSPAN_GUARDED_BY(mutex_);  // there is no session
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::uint64_t last_number_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // of watches and renewals
  // Shared with the session that calls them.
  std::map<std::uint64_t, std::shared_ptr<Watch>> watches_ MEMSPAN_GUARDED_BY(mutex_);
  // Shared with the thread while it calls one.
  std::map<std::uint64_t, std::shared_ptr<const Renewal>> renewals_ MEMSPAN_GUARDED_BY(mutex_);
  std::uint64_t used_renewal_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // 0: none is called now
  std::optional<std::thread> thread_ MEMSPAN_GUARDED_BY(mutex_);
  std::thread::id thread_id_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan
