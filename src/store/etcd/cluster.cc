// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/cluster.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/environment.h"
#include "core/private_file.h"
#include "store/etcd/etcd_messages.h"
#include "store/notice.h"

namespace memspan::etcd {
namespace {

MEMSPAN_REMEDY(kNoEtcd, "etcd-unreachable", "No member of the etcd cluster answers.",
               "Run `etcdctl endpoint health --endpoints HOST:PORT`; check tls_info and firewall.");

constexpr const char* kPasswordFile = "MEMSPAN_ETCD_PASSWORD_FILE";
constexpr const char* kAuthenticate = "/v3/auth/authenticate";
constexpr std::size_t kMostPasswordBytes = 4096;

// A stopped or isolated member accepts connections but does not answer, and a request that was
// forwarded to a departed leader is lost. If all are only slow, later attempts get more time.
constexpr Duration kFirstAttempt = std::chrono::seconds(1);
constexpr Duration kLongestAttempt = std::chrono::seconds(8);
constexpr int kShortAttempts = 6;
// An attempt lasts at least this long, even past the deadline. A caller that gets kTimeout must
// know that nothing takes effect later, as far as etcd answers.
constexpr Duration kLeastAttempt = std::chrono::seconds(1);
// Between attempts: elections take about a second.
constexpr Duration kFirstPause = std::chrono::milliseconds(5);
constexpr Duration kLongestPause = std::chrono::milliseconds(200);

// A member without an answer is passed over for this long: an election, and some.
constexpr Duration kPassedOver = std::chrono::seconds(2);

Deadline attempt_of(Duration limit, const Deadline& deadline) {
  return Deadline::after(std::min(limit, std::max(deadline.remaining(), kLeastAttempt)));
}

}  // namespace

Result<EtcdUser> EtcdUser::read(const std::string& name) {
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

// Processes begin at different members, so that not all use the first.
Cluster::Cluster(StoreAddress address, EtcdUser user, const HttpSettings& settings,
                 const EtcdHost& host)
    : address_(std::move(address)),
      user_(std::move(user)),
      host_(host),
      calls_(settings),
      passed_over_until_(address_.endpoints.size()),
      turn_(static_cast<std::uint64_t>(::getpid())) {}

const Endpoint& Cluster::at(std::uint64_t turn) const {
  return address_.endpoints[turn % address_.endpoints.size()];
}

void Cluster::pass_over(std::uint64_t turn) {
  const auto until = Clock::now() + kPassedOver;
  passed_over_until_[turn % passed_over_until_.size()].store(until, std::memory_order_relaxed);
}

// The same member again if only it answers. The next one if none does.
void Cluster::give_up(std::uint64_t turn) {
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

std::string Cluster::token() {
  MutexLock lock(mutex_);
  return token_;
}

void Cluster::end(Status why) {
  MutexLock lock(mutex_);
  if (has_ended()) return;
  status_ = std::move(why);
  has_ended_.store(true, std::memory_order_release);
  ended_.notify_all();
}

Status Cluster::status() {
  MutexLock lock(mutex_);
  return status_;
}

void Cluster::pause(Duration duration, const Deadline& deadline) {
  const Deadline until = deadline.within(duration);
  MutexLock lock(mutex_);
  while (!has_ended() && ended_.wait_until(mutex_, until)) continue;
}

Result<std::string> Cluster::call(const char* path, const std::string& body,
                                  const Deadline& deadline, Call kind) {
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

Status Cluster::authenticate(const Deadline& deadline, Call kind) {
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

}  // namespace memspan::etcd
