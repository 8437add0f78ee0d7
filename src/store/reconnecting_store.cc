// SPDX-License-Identifier: Apache-2.0
#include "store/reconnecting_store.h"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>
#include <type_traits>

#include "core/interrupt.h"
#include "core/log.h"
#include "core/random.h"
#include "core/thread.h"
#include "store/watch_calls.h"

namespace memspan::inline store {
namespace {

MEMSPAN_REMEDY(kStoreLost, "store-lost",
               "The process that hosts the store ended, or its host cannot be reached.",
               "Look at that process. Transfers reconnect; start pools, spaces and jobs again.");

// Never set: a get of it ends with the session.
constexpr std::string_view kNeverSet = "memspan/never";
// A reachable store answers far sooner, and end() waits for no longer.
constexpr Duration kAttemptPatience = std::chrono::seconds(3);
// Between two waits for a loss, if the store refuses them.
constexpr Duration kRefusalPause = std::chrono::seconds(1);

// Plus or minus a quarter, so that members that lost the store together do not reconnect together.
Duration jittered(Duration pause) {
  const double part = static_cast<double>(random_number()) / static_cast<double>(UINT64_MAX);
  return from_seconds(to_seconds(pause) * (0.75 + part / 2));
}

// Strips "get of KEY: " from the message.
Status reason_of(const Status& loss) {
  const std::string& message = loss.message();
  const std::size_t end = message.find(": ");
  const bool has_question = message.starts_with("get of ") && end != std::string::npos;
  return has_question ? Status(loss.code(), message.substr(end + 2)) : loss;
}

class ReconnectingClient final : public ReconnectingStore {
 public:
  ReconnectingClient(std::unique_ptr<KeyValueStore> first, Options options)
      : options_(std::move(options)),
        member_(first->member()),
        lease_(first->lease()),
        session_{.store = std::move(first), .number = 1} {}

  Status start() {
    MutexLock lock(mutex_);  // until it has the thread that runs
    MEMSPAN_PASS_ASSIGN(thread_, start_thread("a store that reconnects", [this] { run(); }));
    return Status::ok();
  }

  ~ReconnectingClient() override { end(); }

  std::uint64_t add_renewal(Renewal renewal) override MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    renewals_.emplace(++last_number_, std::make_shared<const Renewal>(std::move(renewal)));
    return last_number_;
  }

  void remove_renewal(std::uint64_t renewal) override MEMSPAN_EXCLUDES(mutex_) {
    if (renewal == 0) return;  // the caller has added none
    MutexLock lock(mutex_);
    renewals_.erase(renewal);
    while (used_renewal_ == renewal) changed_.wait_until(mutex_, Deadline::never());
  }

  Status state() const override MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return loss_ || is_ending_ ? loss() : Status::ok();
  }

  Status set(std::string_view key, std::string_view value, Deadline deadline,
             KeyLife life) override {
    return repeat(deadline,
                  [&](auto& session) { return session.store->set(key, value, deadline, life); });
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    return repeat(deadline, [&](auto& session) { return session.store->get(key, deadline); });
  }

  Result<std::string> get_now(std::string_view key, Deadline deadline) override {
    return repeat(deadline, [&](auto& session) { return session.store->get_now(key, deadline); });
  }

  Result<std::string> compare_and_swap(std::string_view key, std::string_view expected,
                                       std::string_view desired, Deadline deadline,
                                       KeyLife life) override {
    MEMSPAN_PASS_ASSIGN(auto session, await_session(0, deadline));
    return session.store->compare_and_swap(key, expected, desired, deadline, life);
  }

  Result<bool> remove(std::string_view key, Deadline deadline) override {
    return repeat(deadline, [&](auto& session) { return session.store->remove(key, deadline); });
  }

  Result<StoreListing> list(std::string_view prefix, Deadline deadline) override {
    return repeat(deadline, [&](auto& session) { return session.store->list(prefix, deadline); });
  }

  // Registers the watch first, so that a session that begins in between includes it.
  Result<std::uint64_t> watch(std::string_view prefix, StoreWatcher watcher,
                              Deadline deadline) override MEMSPAN_EXCLUDES(mutex_) {
    const auto watch = std::make_shared<Watch>(std::string(prefix), std::move(watcher));
    std::uint64_t number = 0;
    {
      MutexLock lock(mutex_);
      number = ++last_number_;
      watches_.emplace(number, watch);
    }
    Status begun = repeat(deadline, [&](const Session& session) -> Status {
      {
        MutexLock lock(mutex_);
        if (watch->session >= session.number) return Status::ok();
      }
      MEMSPAN_PASS_ASSIGN(const std::uint64_t id, begin_watch(*session.store, watch, deadline));
      MutexLock lock(mutex_);
      if (session_.number != session.number) return loss();
      watch->session = session.number;
      watch->id = id;
      return Status::ok();
    });
    if (begun.is_ok()) return number;
    MutexLock lock(mutex_);
    watches_.erase(number);
    return begun;
  }

  // Does not wait for a lost store.
  Status unwatch(std::uint64_t watch, Deadline deadline) override MEMSPAN_EXCLUDES(mutex_) {
    MEMSPAN_PASS(check_process());
    std::shared_ptr<Watch> over;
    Session session;
    std::uint64_t id = 0;
    {
      MutexLock lock(mutex_);
      const auto found = watches_.find(watch);
      if (found == watches_.end())
        return {Code::kNotFound, fmt::format("unwatch: there is no watch {}", watch)};
      over = std::move(found->second);
      watches_.erase(found);
      session = session_;
      if (!loss_ && over->session == session.number) id = over->id;
    }
    Status status = over->calls.end(deadline);
    if (id == 0) return status;
    const Status there = session.store->unwatch(id, deadline);
    // The end of a session also ends its watches.
    if (status.is_ok() && there.code() != Code::kStoreLost) status = there;
    return status;
  }

  // A child made by fork() has no such thread.
  void end() override MEMSPAN_EXCLUDES(mutex_) {
    if (process_ != ::getpid()) return;
    std::optional<std::thread> thread;
    std::shared_ptr<KeyValueStore> store;
    {
      MutexLock lock(mutex_);
      is_ending_ = true;
      thread = std::exchange(thread_, std::nullopt);
      store = session_.store;
      changed_.notify_all();
    }
    store->end();
    if (thread) thread->join();
  }

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

  Status check_process() const {
    if (process_ == ::getpid()) return Status::ok();
    return {Code::kForked, fmt::format("the connection to the store belongs to process {}, which "
                                       "made this one by fork()",
                                       process_)};
  }

  static Result<std::uint64_t> begin_watch(KeyValueStore& store,
                                           const std::shared_ptr<Watch>& watch,
                                           const Deadline& deadline) {
    return store.watch(
        watch->prefix, [watch](const StoreChange& change) { watch->calls.call(change); }, deadline);
  }

  // Returns a session that began after that one. kStoreLost at the deadline, and after end().
  Result<Session> await_session(std::uint64_t after, const Deadline& deadline)
      MEMSPAN_EXCLUDES(mutex_) {
    MEMSPAN_PASS(check_process());
    MutexLock lock(mutex_);
    while (!is_ending_ && (loss_ || session_.number <= after)) {
      // This thread itself begins the next session.
      if (thread_ && std::this_thread::get_id() == thread_->get_id()) return loss();
      if (wait_interruptibly(changed_, mutex_, deadline)) continue;
      if (is_ending_ || (!loss_ && session_.number > after)) break;
      const Status why = end_of_wait({});
      return why.code() == Code::kTimeout ? loss() : why;
    }
    if (is_ending_) return loss();
    return session_;
  }

  // Repeats `call(session)`, each time in a new session, until it returns anything but kStoreLost.
  template <typename Call>
  auto repeat(const Deadline& deadline, Call call) -> std::invoke_result_t<Call, const Session&> {
    for (std::uint64_t used = 0;;) {
      MEMSPAN_PASS_ASSIGN(const Session session, await_session(used, deadline));
      auto answer = call(session);
      if (answer.code() != Code::kStoreLost) return answer;
      used = session.number;
    }
  }

  Status loss() const MEMSPAN_REQUIRES(mutex_) {
    if (is_ending_) return {Code::kStoreLost, "this member has ended its lease"};
    if (!loss_)
      return {Code::kStoreLost,
              fmt::format("the store at {} is lost{}", options_.where, kStoreLost)};
    const std::string attempts = loss_->attempts == 0
                                     ? "it has yet to be tried again"
                                     : fmt::format("the last of {} attempts to connect failed: {}",
                                                   loss_->attempts, loss_->last_attempt.message());
    return {Code::kStoreLost, fmt::format("the store at {} was lost {:.1f} s ago ({}); {}{}",
                                          options_.where, to_seconds(Clock::now() - loss_->since),
                                          loss_->why.message(), attempts, kStoreLost)};
  }

  // Called by the thread.
  void run() {
    for (;;) {
      const auto session = await_session(0, Deadline::never());
      if (!session.is_ok()) return;
      const Clock::time_point began = Clock::now();
      const Status why = await_loss(*session);
      if (why.is_ok()) return;
      // After a short session the pause stays, to avoid a busy loop.
      if (Clock::now() - began > options_.longest_pause) next_pause_ = Duration::zero();
      settles_.reset();
      note_loss(why);
      if (!reconnect()) return;
    }
  }

  // Returns ok after end().
  Status await_loss(const Session& session) {
    for (;;) {
      Status over = session.store->get(kNeverSet, settles_.value_or(Deadline::never())).status();
      {
        MutexLock lock(mutex_);
        if (is_ending_) return Status::ok();
      }
      if (over.code() == Code::kStoreLost) return over;
      if (settles_ && settles_->has_passed()) {
        settles_.reset();
        static_cast<void>(use_renewals([](const Renewal& renewal) {
          if (renewal.settle) renewal.settle();
          return Status::ok();
        }));
      } else if (!pause(kRefusalPause)) {
        return Status::ok();
      }
    }
  }

  void note_loss(const Status& over) MEMSPAN_EXCLUDES(mutex_) {
    const Status why = reason_of(over);
    {
      MutexLock lock(mutex_);
      loss_ = Loss{.since = Clock::now(), .why = why};
      changed_.notify_all();
    }
    log_line(
        LogLevel::kWarn,
        fmt::format("the store at {} is lost, and this process tries to connect to it again: {}{}",
                    options_.where, why.message(), kStoreLost));
  }

  bool reconnect() {
    for (;;) {
      if (next_pause_ != Duration::zero() && !pause(jittered(next_pause_))) return false;
      next_pause_ = std::clamp(2 * next_pause_, options_.first_pause, options_.longest_pause);
      auto connected = options_.connect(Deadline::after(kAttemptPatience));
      Status begun = connected.status();
      if (connected.is_ok()) {
        const std::shared_ptr<KeyValueStore> store = std::move(connected).value();
        begun = begin_session(store);
        if (begun.is_ok()) return true;
        store->end();
      }
      MutexLock lock(mutex_);
      if (is_ending_) return false;
      ++loss_->attempts;
      loss_->last_attempt = std::move(begun);
    }
  }

  Status begin_session(const std::shared_ptr<KeyValueStore>& store) {
    const Deadline deadline = Deadline::after(kAttemptPatience);
    std::map<std::uint64_t, std::shared_ptr<Watch>> watches;
    {
      MutexLock lock(mutex_);
      watches = watches_;
    }
    std::map<std::uint64_t, std::uint64_t> ids;
    for (const auto& [number, watch] : watches) {
      MEMSPAN_PASS_ASSIGN(ids[number], begin_watch(*store, watch, deadline));
    }
    MEMSPAN_PASS(use_renewals([&](const Renewal& renewal) {
      Status renewed = renewal.renew ? renewal.renew(*store, deadline) : Status::ok();
      const Code code = renewed.code();
      return code == Code::kStoreLost || code == Code::kTimeout ? renewed : Status::ok();
    }));
    return publish(store, ids);
  }

  // Watches that ended in the meantime also end in this session. The former session ends last,
  // because its watcher may wait for this one.
  Status publish(const std::shared_ptr<KeyValueStore>& store,
                 const std::map<std::uint64_t, std::uint64_t>& watches) MEMSPAN_EXCLUDES(mutex_) {
    std::vector<std::uint64_t> over;
    std::shared_ptr<KeyValueStore> former;
    Duration away{};
    {
      MutexLock lock(mutex_);
      if (is_ending_) return loss();
      former = std::exchange(session_.store, store);
      ++session_.number;
      for (const auto& [number, id] : watches) {
        const auto found = watches_.find(number);
        if (found == watches_.end()) {
          over.push_back(id);
          continue;
        }
        found->second->session = session_.number;
        found->second->id = id;
      }
      away = Clock::now() - loss_->since;
      loss_.reset();
      changed_.notify_all();
    }
    const Deadline deadline = Deadline::after(kAttemptPatience);
    for (const std::uint64_t id : over) static_cast<void>(store->unwatch(id, deadline));
    former->end();
    settles_ = Deadline::after(options_.settling);
    log_line(LogLevel::kWarn, fmt::format("the store at {} is back after {:.1f} s", options_.where,
                                          to_seconds(away)));
    return Status::ok();
  }

  // Calls `use` for each renewal that was not removed, up to the first failure.
  template <typename Use>
  Status use_renewals(Use use) MEMSPAN_EXCLUDES(mutex_) {
    std::map<std::uint64_t, std::shared_ptr<const Renewal>> renewals;
    {
      MutexLock lock(mutex_);
      renewals = renewals_;
    }
    for (const auto& [number, renewal] : renewals) {
      {
        MutexLock lock(mutex_);
        if (!renewals_.contains(number)) continue;
        used_renewal_ = number;
      }
      Status status = use(*renewal);
      MutexLock lock(mutex_);
      used_renewal_ = 0;
      changed_.notify_all();
      if (!status.is_ok()) return status;
    }
    return Status::ok();
  }

  // False if end() cut it short.
  bool pause(Duration duration) MEMSPAN_EXCLUDES(mutex_) {
    const Deadline deadline = Deadline::after(duration);
    MutexLock lock(mutex_);
    while (!is_ending_ && !deadline.has_passed()) changed_.wait_until(mutex_, deadline);
    return !is_ending_;
  }

  const Options options_;
  const std::string member_;
  const std::uint64_t lease_;
  const pid_t process_ = ::getpid();
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

}  // namespace

Result<std::unique_ptr<ReconnectingStore>> ReconnectingStore::start(
    std::unique_ptr<KeyValueStore> first, Options options) {
  auto made = std::make_unique<ReconnectingClient>(std::move(first), std::move(options));
  MEMSPAN_PASS(made->start());
  return std::unique_ptr<ReconnectingStore>(std::move(made));
}

}  // namespace memspan::inline store
