// SPDX-License-Identifier: Apache-2.0
// A key-value store whose lease outlives the connection. When the store is lost, a thread
// reconnects until it succeeds, and restores this member's state in the new session.
//
//                lost                  a session begins
//   connected ─────────► away: attempt ─────────────────► renewing ──► connected
//                          ▲     │ pause                     │ lost
//                          └─────┴───────────────────────────┘
//
// Calls wait for the store until their deadline and then return kStoreLost. Its message has the
// time and the cause of the loss, and why the last attempt failed. A call whose deadline has passed
// returns that at once. Interrupted calls are repeated, except compare_and_swap(), which may have
// taken effect. Watches continue in the new session, but miss the changes in between. The keys
// under the lease are lost, and renewals set them again.
#pragma once

#include <sys/types.h>

#include <map>
#include <thread>
#include <type_traits>

#include "store/watch_calls.h"

namespace memspan {

// Thread-safe. In a child made by fork() every call returns kForked.
class ReconnectingStore final : public KeyValueStore {
 public:
  struct Options {
    // Makes one attempt to begin a session, on the store's thread. Any failure is retried.
    std::function<Result<std::unique_ptr<KeyValueStore>>(Deadline)> connect;
    std::string where;  // for messages
    // Between attempts; doubled each time, plus or minus a random quarter.
    Duration first_pause = std::chrono::milliseconds(100);
    Duration longest_pause = std::chrono::seconds(2);
    // Time after a reconnection for the other members to reconnect.
    Duration settling = std::chrono::seconds(5);
  };
  // Restores a member's state. Both are called on the store's thread.
  struct Renewal {
    // Restores the state in a new session, after the watches and before all other calls. It may not
    // call this object. kStoreLost and kTimeout abandon the session. May be empty.
    std::function<Status(KeyValueStore& session, Deadline deadline)> renew;
    // Called once a new session has lasted for `settling`. May be empty.
    std::function<void()> settle = {};
  };

  // Continues from an open session.
  static Result<std::unique_ptr<ReconnectingStore>> start(std::unique_ptr<KeyValueStore> first,
                                                          Options options);
  ~ReconnectingStore() override;

  // For all later sessions, in the order of the renewals' numbers.
  std::uint64_t add_renewal(Renewal renewal) MEMSPAN_EXCLUDES(mutex_);
  // After this returns, no call of it runs or begins. Renewals may not call this.
  void remove_renewal(std::uint64_t renewal) MEMSPAN_EXCLUDES(mutex_);
  // Ok during a session; else the status of a call whose deadline has passed.
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
  // Does not wait for a lost store.
  Status unwatch(std::uint64_t watch, Deadline deadline) override MEMSPAN_EXCLUDES(mutex_);
  void end() override MEMSPAN_EXCLUDES(mutex_);
  // Always that of the first session.
  std::uint64_t lease() const override { return lease_; }
  const std::string& member() const override { return member_; }

 private:
  // A watch over all sessions. One session at a time calls its watcher, even if a call from the
  // former session still runs when the next one begins.
  struct Watch {
    Watch(std::string of, StoreWatcher watcher)
        : prefix(std::move(of)), calls(std::move(watcher)) {}
    const std::string prefix;
    WatchCalls calls;
    // The session that has it; guarded, like id, by mutex_.
    std::uint64_t session = 0;  // 0: none yet
    std::uint64_t id = 0;       // in that session
  };
  // A session of the underlying store.
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
  // Returns a session that began after that one. kStoreLost at the deadline, and after end().
  Result<Session> await_session(std::uint64_t after, const Deadline& deadline)
      MEMSPAN_EXCLUDES(mutex_);
  // Repeats `call(store)` until it returns anything but kStoreLost.
  template <typename Call>
  auto repeat(const Deadline& deadline, Call call) -> std::invoke_result_t<Call, KeyValueStore&>;
  Status loss() const MEMSPAN_REQUIRES(mutex_);

  // Called by the thread.
  void run();
  Status await_loss(const Session& session);
  void note_loss(const Status& over) MEMSPAN_EXCLUDES(mutex_);
  bool reconnect();
  Status begin_session(const std::shared_ptr<KeyValueStore>& store);
  Status renew(KeyValueStore& store, const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_);
  Status publish(const std::shared_ptr<KeyValueStore>& store,
                 const std::map<std::uint64_t, std::uint64_t>& watches) MEMSPAN_EXCLUDES(mutex_);
  // Calls `use` for each renewal that was not removed, up to the first failure.
  template <typename Use>
  Status use_renewals(Use use) MEMSPAN_EXCLUDES(mutex_);
  // False if end() cut it short.
  bool pause(Duration duration) MEMSPAN_EXCLUDES(mutex_);

  const Options options_;
  const std::string member_;
  const std::uint64_t lease_;
  const pid_t process_;
  Duration next_pause_ = Duration::zero();  // only for the thread; zero: attempt at once
  std::optional<Deadline> settles_ = {};    // only for the thread
  mutable Mutex mutex_;
  ConditionVariable changed_;  // a session, its loss, a renewal that has returned, the end
  Session session_ MEMSPAN_GUARDED_BY(mutex_);
  std::optional<Loss> loss_ MEMSPAN_GUARDED_BY(mutex_);  // set: no session
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::uint64_t last_number_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // of watches and renewals
  // Shared with the session that calls them.
  std::map<std::uint64_t, std::shared_ptr<Watch>> watches_ MEMSPAN_GUARDED_BY(mutex_);
  // Shared with the thread while it calls one.
  std::map<std::uint64_t, std::shared_ptr<const Renewal>> renewals_ MEMSPAN_GUARDED_BY(mutex_);
  std::uint64_t used_renewal_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // 0: none is called now
  std::optional<std::thread> thread_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan
