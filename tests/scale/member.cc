// SPDX-License-Identifier: Apache-2.0
#include "member.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "resources.h"
#include "support/message_counters.h"

namespace memspan::scale {
namespace {

constexpr std::size_t kHeapBytes = 64 << 10;
// Before the counted ones: the first barriers make connections.
constexpr int kFirstBarriers = 2;

}  // namespace

Member::Member(const Plan& plan, int rank, StoreAccess store, MemberReport& report)
    : plan_(plan), rank_(rank), access_(std::move(store)), report_(report) {}

Member::~Member() = default;

Status Member::connect() {
  StoreAccess access = access_;
  access.member = fmt::format("PE {}", rank_);
  MEMSPAN_TRY_ASSIGN(store_, connect_store(access, deadline()), "connecting to the store");
  group_ = std::make_unique<StoreGroup>(*store_, "scale", rank_, plan_.members);
  report_.connected = now_s();
  return Status::ok();
}

Status Member::meet() {
  return group_->barrier(deadline());
}

Status Member::join() {
  const Exchange exchange = [this](const std::string& mine) {
    report_.text_bytes = std::max<std::uint64_t>(report_.text_bytes, mine.size());
    return group_->allgather(mine, deadline());
  };
  MEMSPAN_TRY_ASSIGN(Membership membership,
                     join_by_exchange(rank_, plan_.members, exchange, from_seconds(plan_.limit_s),
                                      fmt::format("sim-{}", rank_)),
                     "joining");
  MEMSPAN_TRY_ASSIGN(
      world_, World::create(std::move(membership), {kHeapBytes}, StaticVariables::kOwn), "joining");
  world_->waiting().limit = from_seconds(plan_.limit_s);
  team_ = Team::world(*world_);
  report_.joined = now_s();
  return Status::ok();
}

Status Member::run_barriers() {
  report_.connections_joined = counter("connections made");
  for (int i = 0; i < kFirstBarriers; ++i) MEMSPAN_PASS(team_->barrier("the first barriers"));
  // Nobody's barrier has sent anything yet that the next lines would count.
  MEMSPAN_PASS(meet());
  const std::uint64_t before = counter("messages received");
  const std::uint64_t bytes_before = counter("bytes of messages");
  MEMSPAN_PASS(meet());
  report_.barriers_begun = now_s();
  for (int i = 0; i < plan_.barriers; ++i) MEMSPAN_PASS(team_->barrier("the counted barriers"));
  report_.barriers_ended = now_s();
  MEMSPAN_PASS(meet());
  report_.barrier_messages = counter("messages received") - before;
  report_.barrier_bytes = counter("bytes of messages") - bytes_before;
  report_.connections_used = counter("connections made");
  return meet();
}

Status Member::join_pool() {
  const std::string prefix = "pool/m/";
  // Owners: this call and the watch, which may outlive it for a moment.
  struct Known {
    Mutex mutex;
    ConditionVariable changed;
    std::set<std::string> keys MEMSPAN_GUARDED_BY(mutex);
  };
  const auto known = std::make_shared<Known>();
  const auto note = [known](const std::string& key) {
    MutexLock lock(known->mutex);
    known->keys.insert(key);
    known->changed.notify_all();
  };
  const auto hear_of = [&](std::size_t members, const Deadline& until) -> Status {
    MutexLock lock(known->mutex);
    while (known->keys.size() < members)
      if (!known->changed.wait_until(known->mutex, until) && until.has_passed())
        return {Code::kTimeout,
                fmt::format("{} of {} members of the pool were seen", known->keys.size(), members)};
    return Status::ok();
  };
  const auto members = static_cast<std::size_t>(plan_.members);
  const bool is_last = rank_ == plan_.members - 1;
  if (is_last) MEMSPAN_PASS(meet());
  report_.pool_begun = now_s();
  const Deadline until = deadline();
  MEMSPAN_TRY_ASSIGN(const std::uint64_t watch,
                     store_->watch(
                         prefix, [note](const StoreChange& change) { note(change.key); }, until),
                     "joining the pool");
  // About as long as a pool's record.
  const std::string record(160, 'r');
  MEMSPAN_PASS(store_->set(prefix + std::to_string(rank_), record, until, KeyLife::kLease));
  MEMSPAN_TRY_ASSIGN(const StoreListing listed, store_->list(prefix, until), "joining the pool");
  for (const auto& [key, value] : listed) note(key);
  MEMSPAN_PASS(hear_of(is_last ? members : members - 1, until));
  report_.pool_joined = now_s();
  if (!is_last) MEMSPAN_PASS(meet());
  MEMSPAN_PASS(hear_of(members, deadline()));
  report_.pool_heard = now_s();
  MEMSPAN_PASS(store_->unwatch(watch, deadline()));
  return meet();
}

Status Member::end() {
  report_.end_begun = now_s();
  MEMSPAN_PASS(world_->end("the end", EndKind::kFinalize));
  report_.ended = now_s();
  report_.connections_ended = counter("connections made");
  MEMSPAN_PASS(meet());
  world_->leave();
  return Status::ok();
}

Status Member::wait_for_death() {
  const int last = plan_.members - 1;
  StoreGroup survivors(*store_, "survivors", rank_, plan_.members - 1);
  const Status status = team_->barrier("a barrier that cannot be");
  report_.ended = now_s();
  report_.connections_ended = counter("connections made");
  if (status.code() != Code::kPeerLost)
    return {Code::kInternal, fmt::format("the barrier ended with \"{}\"", status.message())};
  // What anybody says of others has come before anybody goes.
  MEMSPAN_PASS(survivors.barrier(deadline()));
  for (int peer = 0; peer < plan_.members; ++peer)
    if ((world_->segment().peer(peer).death.load() != 0) != (peer == last))
      return {Code::kInternal,
              fmt::format("PE {} is noted as {}", peer, peer == last ? "alive" : "dead")};
  return survivors.barrier(deadline());
}

std::uint64_t Member::counter(std::string_view name) const {
  const LinkedPeers* const linked = world_->linked();
  return linked == nullptr ? 0 : message_counter(linked->transport(), name).value();
}

}  // namespace memspan::scale
