// SPDX-License-Identifier: Apache-2.0
#include "capi/smem/members.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "capi/smem/config_store.h"
#include "capi/smem/fork_aware_singleton.h"
#include "capi/store_security.h"
#include "core/mutex.h"
#include "store/recipes/rank_recipe.h"

namespace memspan::capi {
namespace {

// One store's. `connecting` is held while connecting, so that two threads make one connection, and
// taken before Places::mutex, which guards `member`.
struct Place {
  Mutex connecting;
  std::weak_ptr<Member> member;
  std::atomic<bool> may_host{false};  // a caller has allowed it
};

// The mutex is held for moments, so that a fork() can wait for it.
struct Places {
  Mutex mutex;
  bool is_held_for_fork MEMSPAN_GUARDED_BY(mutex) = false;
  std::vector<std::shared_ptr<Member>> kept_in_child;
  // Shared with the threads that use one now.
  std::map<std::string, std::shared_ptr<Place>> by_address MEMSPAN_GUARDED_BY(mutex);

  std::shared_ptr<Place> at(const std::string& address) MEMSPAN_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    auto& place = by_address[address];
    if (place == nullptr) place = std::make_shared<Place>();
    return place;
  }
  std::shared_ptr<Member> member_of(const Place& place) MEMSPAN_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return place.member.lock();
  }
  void set_member(Place& place, const std::shared_ptr<Member>& member) MEMSPAN_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    place.member = member;
  }
  std::vector<std::shared_ptr<Member>> members() MEMSPAN_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return living();
  }
  std::vector<std::shared_ptr<Member>> living() MEMSPAN_REQUIRES(mutex) {
    std::vector<std::shared_ptr<Member>> all;
    for (const auto& [address, place] : by_address)
      if (auto member = place->member.lock()) all.push_back(std::move(member));
    return all;
  }

  void before_fork() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
    mutex.lock();
    is_held_for_fork = true;
  }
  void after_fork() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
    // Made while the fork began.
    if (std::exchange(is_held_for_fork, false)) mutex.unlock();
  }
  // The child never destroys the members, because their threads do not exist in it.
  void forget_in_child() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
    if (!is_held_for_fork) return;
    kept_in_child = living();
    for (const auto& member : kept_in_child) member->forget_in_child();
  }
};

// At the end of the process: the threads of connections end before OpenSSL does, and the other
// members learn at once that this one is gone. Memory stays as it is.
void end_all_members() {
  for (const auto& member : fork_aware_singleton<Places>().members()) member->store().end();
}

bool is_of_use(Member& member, AfterLoss after_loss) {
  if (after_loss == AfterLoss::kReconnects) return true;
  constexpr auto kPatience = std::chrono::seconds(5);
  return member.store().get_now("memspan", Deadline::after(kPatience)).code() == Code::kNotFound;
}

}  // namespace

Result<std::shared_ptr<Member>> member_at(const char* url, Hosting hosting, AfterLoss after_loss,
                                          std::optional<StoreSecurity> security,
                                          Deadline deadline) {
  MEMSPAN_PASS_ASSIGN(auto endpoint, read_url(url));
  Places& places = fork_aware_singleton<Places>();
  const bool reconnects = after_loss == AfterLoss::kReconnects;
  const std::shared_ptr<Place> place =
      places.at(endpoint.to_string() + (reconnects ? " for good" : ""));
  MutexLock connecting(place->connecting);
  if (hosting == Hosting::kWhenPossible) place->may_host = true;
  if (auto member = places.member_of(*place); member != nullptr && is_of_use(*member, after_loss))
    return member;
  if (!security) {
    MEMSPAN_PASS_ASSIGN(security, chosen_security());
  }
  Status hosted;
  if (hosting == Hosting::kWhenPossible) hosted = host_store(endpoint, *security);
  // No other attempt can fix an error in our own certificates.
  if (hosted.code() == Code::kInvalidArgument) return hosted;
  // Again while no store answers: the listener that has the port now may be a store that is ending.
  const StoreAccess access{.endpoint = endpoint,
                           .security = *security,
                           .member = fmt::format("process {}", ::getpid()),
                           .before_attempt = [place, address = endpoint, security = *security] {
                             if (place->may_host)
                               static_cast<void>(host_store_again(address, security));
                           }};
  auto member =
      reconnects ? Member::join_for_good(access, deadline) : Member::join(access, deadline);
  if (!member.is_ok()) {
    if (hosted.is_ok() || hosted.code() == Code::kUnavailable ||
        hosted.code() == Code::kUnreachable)
      return member.status();
    return Status(member.code(), fmt::format("{} (and hosting it here failed: {})",
                                             member.status().message(), hosted.message()));
  }
  places.set_member(*place, *member);
  [[maybe_unused]] static const int registered = std::atexit(end_all_members);
  return member;
}

Result<ClaimedRank> ClaimedRank::take(std::shared_ptr<Member> member, const char* scope, int rank,
                                      std::uint32_t ranks, Deadline deadline) {
  MEMSPAN_PASS_ASSIGN(
      auto taken, take_freed_rank(member->store(), scope, rank, static_cast<int>(ranks), deadline));
  return ClaimedRank(std::move(member), scope, static_cast<std::uint32_t>(taken.rank));
}

// Said, for the end of a connection may be noticed later than the next one asks for a rank.
ClaimedRank::~ClaimedRank() {
  if (member_ != nullptr)
    member_->tell_end(
        [&](const Deadline& deadline) { return give_rank(member_->store(), scope_, deadline); });
}

}  // namespace memspan::capi
