// SPDX-License-Identifier: Apache-2.0
// etcd's members as one. A call uses the current member, and the next one if that does not answer,
// has no leader or is about to end.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "core/environment.h"
#include "core/private_file.h"
#include "store/etcd/etcd_messages.h"
#include "store/etcd/http.h"
#include "store/notice.h"

namespace memspan::etcd {

// The end of messages about a cluster that does not answer (core/status.h).
extern const char kNoEtcd[];

// This process's user at etcd; the name is empty if etcd requires no user. A value.
struct EtcdUser {
  std::string name;
  std::string password;

  // The password is in the private file that MEMSPAN_ETCD_PASSWORD_FILE names.
  static Result<EtcdUser> read(const std::string& name) {
    constexpr const char* kPasswordFile = "MEMSPAN_ETCD_PASSWORD_FILE";
    constexpr std::size_t kMostPasswordBytes = 4096;
    EtcdUser user{.name = name, .password = {}};
    const auto path = environment(kPasswordFile);
    if (name.empty() == path.has_value())
      return Status(Code::kInvalidArgument,
                    fmt::format("{} is {}set, and the store's address names {} user, as in "
                                "etcd://USER@HOST:PORT",
                                kPasswordFile, path ? "" : "not ", path ? "no" : "a"));
    if (!path) return user;
    MEMSPAN_TRY_ASSIGN(user.password, read_private_file(kPasswordFile, *path, kMostPasswordBytes),
                       "reading etcd's password");
    while (user.password.ends_with('\n')) user.password.pop_back();
    return user;
  }
};

// Thread-safe.
class Cluster {
 public:
  // Processes begin at different members, so that not all use the first.
  Cluster(StoreAddress address, EtcdUser user, const HttpSettings& settings, const EtcdHost& host)
      : address_(std::move(address)),
        user_(std::move(user)),
        host_(host),
        calls_(settings),
        passed_over_until_(address_.endpoints.size()),
        turn_(static_cast<std::uint64_t>(::getpid())) {}

  // Sends a repeatable request to one member after the other, until one answers or the deadline has
  // passed (kTimeout). An attempt without an answer may have taken effect. After end() it fails
  // with the status of end(), unless it is a last call.
  enum class Call { kNormal, kLast };
  Result<std::string> call(const char* path, const std::string& body, const Deadline& deadline,
                           Call kind = Call::kNormal) {
    const bool is_last = kind == Call::kLast;
    const bool is_first = path == std::string_view(kAuthenticate);
    const auto is_over = [&] { return (!is_last && has_ended()) || host_.is_interrupted(); };
    const auto began = Clock::now();
    const std::string where = address_.to_string();
    bool has_told = false;
    Status last;
    Duration limit = kFirstAttempt;
    Duration rest = kFirstPause;
    int silent_attempts = 0;
    bool has_authenticated = false;
    for (;;) {
      if (!is_last && has_ended()) return status();
      const auto waited = Clock::now() - began;
      if (deadline.has_passed())
        return Status(
            Code::kTimeout,
            fmt::format("no answer from {} after {:.3f} s: {}{}", where, to_seconds(waited),
                        last.is_ok() ? "the deadline had passed before" : last.message(), kNoEtcd));
      if (waited >= kSilentWait && !std::exchange(has_told, true))
        host_.log(LogLevel::kWarn,
                  fmt::format("waiting {} for {}, which has not answered for {:.0f} s: {}{}",
                              until(deadline), where, to_seconds(waited), last.message(), kNoEtcd));
      const std::uint64_t turn = this->turn();
      const auto begin = Clock::now();
      auto answer = calls_.post(at(turn), path, body, is_first ? std::string() : token(),
                                attempt_of(limit, deadline), is_over);
      if (answer.is_ok()) return answer;
      if (!is_last && has_ended()) return status();
      if (host_.is_interrupted()) return host_.interruption();
      last = answer.status();
      if (is_token_refused(last) && !is_first && !std::exchange(has_authenticated, true)) {
        MEMSPAN_PASS(authenticate(deadline, kind));
        continue;
      }
      if (last.code() != Code::kUnavailable) return last;
      const bool was_silent = Clock::now() - begin >= kFirstAttempt / 2;
      if (was_silent) pass_over(turn);
      give_up(turn);
      pause(rest, deadline);
      if (was_silent && ++silent_attempts > kShortAttempts)
        limit = std::min(2 * limit, kLongestAttempt);
      rest = std::min(2 * rest, kLongestPause);
    }
  }

  // Number of the current member; it grows with every change.
  std::uint64_t turn() const { return turn_.load(std::memory_order_relaxed); }
  const Endpoint& at(std::uint64_t turn) const {
    return address_.endpoints[turn % address_.endpoints.size()];
  }

  // The member of that turn failed: makes the next one current that is not passed over, unless that
  // has happened already. The same member again if only it answers. The next one if none does.
  void give_up(std::uint64_t turn) {
    const std::size_t members = passed_over_until_.size();
    const auto now = Clock::now();
    const auto answers = [&](std::uint64_t each) {
      return passed_over_until_[each % members].load(std::memory_order_relaxed) <= now;
    };
    std::uint64_t next = turn + 1;
    while (next < turn + members && !answers(next)) ++next;
    if (!answers(next)) next = turn + 1;
    turn_.compare_exchange_strong(turn, next, std::memory_order_relaxed);
  }

  // Sent with every request; empty without a user.
  std::string token() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return token_;
  }

  // Gets a new token.
  Status authenticate(const Deadline& deadline, Call kind = Call::kNormal) {
    if (user_.name.empty()) return Status::ok();
    auto answer =
        call(kAuthenticate, authenticate_request(user_.name, user_.password), deadline, kind);
    if (!answer.is_ok())
      return answer.status().annotate(fmt::format("authenticating as {} at etcd", user_.name));
    MEMSPAN_TRY_ASSIGN(std::string token, read_token(*answer), "etcd");
    MutexLock lock(mutex_);
    token_ = std::move(token);
    return Status::ok();
  }

  // Makes every later call fail with `why`, and pending ones within HttpCalls::kLook. Only the
  // first end() counts.
  void end(Status why) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (has_ended()) return;
    status_ = std::move(why);
    has_ended_.store(true, std::memory_order_release);
    ended_.notify_all();
  }

  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }
  Status status() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return status_;
  }

  const StoreAddress& address() const { return address_; }

 private:
  static constexpr const char* kAuthenticate = "/v3/auth/authenticate";

  // A stopped or isolated member accepts connections but does not answer, and a request that was
  // forwarded to a departed leader is lost. If all are only slow, later attempts get more time.
  static constexpr Duration kFirstAttempt = std::chrono::seconds(1);
  static constexpr Duration kLongestAttempt = std::chrono::seconds(8);
  static constexpr int kShortAttempts = 6;
  // An attempt lasts at least this long, even past the deadline. A caller that gets kTimeout must
  // know that nothing takes effect later, as far as etcd answers.
  static constexpr Duration kLeastAttempt = std::chrono::seconds(1);
  // Between attempts: elections take about a second.
  static constexpr Duration kFirstPause = std::chrono::milliseconds(5);
  static constexpr Duration kLongestPause = std::chrono::milliseconds(200);

  // A member without an answer is passed over for this long: an election, and some.
  static constexpr Duration kPassedOver = std::chrono::seconds(2);

  static Deadline attempt_of(Duration limit, const Deadline& deadline) {
    return Deadline::after(std::min(limit, std::max(deadline.remaining(), kLeastAttempt)));
  }

  // The member of that turn, for a while.
  void pass_over(std::uint64_t turn) {
    const auto until = Clock::now() + kPassedOver;
    passed_over_until_[turn % passed_over_until_.size()].store(until, std::memory_order_relaxed);
  }

  void pause(Duration duration, const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_) {
    const Deadline until = deadline.within(duration);
    MutexLock lock(mutex_);
    while (!has_ended() && ended_.wait_until(mutex_, until)) continue;
  }

  const StoreAddress address_;
  const EtcdUser user_;
  const EtcdHost host_;
  HttpCalls calls_;
  std::vector<std::atomic<Clock::time_point>> passed_over_until_;  // of each member
  std::atomic<std::uint64_t> turn_;
  std::atomic<bool> has_ended_ = false;  // set after status_ with release
  Mutex mutex_;
  ConditionVariable ended_;
  Status status_ MEMSPAN_GUARDED_BY(mutex_);
  std::string token_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::etcd
