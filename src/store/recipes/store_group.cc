// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/store_group.h"

#include "store/recipes/group_collector.h"
#include "store/recipes/rank_recipe.h"

namespace memspan::inline store {
namespace {

// How often a member that waits calls `look`, and checks that its own place still exists.
constexpr Duration kLookEvery = std::chrono::milliseconds(100);
constexpr int kLooksPerCheck = 5;
// For what a member that gives up, or ends, still has to do.
constexpr Duration kFarewell = std::chrono::seconds(2);

Status this_member_left(int rank) {
  return {Code::kPeerLost, fmt::format("this member, rank {}, is gone: it left", rank)};
}

}  // namespace

StoreGroup::StoreGroup(KeyValueStore& store, std::string name, int rank, int size)
    : store_(store),
      rank_(rank),
      keys_{.group = std::move(name), .size = size},
      mine_{.lease = store.lease(), .name = store.member()} {
  MEMSPAN_CHECK(size > 0 && rank >= 0 && rank < size);
}

StoreGroup::StoreGroup(KeyValueStore& store, const CreatedGroup& created, int rank)
    : StoreGroup(store, created.name, rank, static_cast<int>(created.members.size())) {
  keys_.created = created;
  for (int each = 0; const auto& member : created.members)
    keys_.ranks[created.alive_key(member.nonce)] = each++;
}

StoreGroup::~StoreGroup() {
  static_cast<void>(stop(Deadline::after(kFarewell)));
}

Status StoreGroup::stop(Deadline deadline) {
  changes_.reset();
  return stop_collecting(deadline);
}

Status StoreGroup::barrier(Deadline deadline) {
  return allgather({}, deadline).status();
}

Result<std::vector<std::string>> StoreGroup::allgather(std::string_view mine, Deadline deadline,
                                                       const Look& look) {
  const std::uint64_t operation = operation_++;
  auto parts = run(operation, mine, deadline, look);
  if (parts.is_ok()) return parts;
  return parts.status().annotate(fmt::format("operation {} of the group", operation));
}

Result<std::vector<std::string>> StoreGroup::run(std::uint64_t operation, std::string_view mine,
                                                 const Deadline& deadline, const Look& look) {
  MEMSPAN_PASS(enter(deadline));
  mine_.parts[operation] = Contribution(mine, keys_.size);
  MEMSPAN_TRY(store_.set(keys_.member_key(rank_), encode_record(mine_), deadline), "contributing");
  WaitNotice notice{rank_, keys_.size, keys_.group, deadline};
  for (int looks = 0;; ++looks) {
    take_changes(operation,
                 looks == 0 ? Deadline::after(Duration::zero()) : deadline.within(kLookEvery));
    if (auto found = outcomes_.extract(operation); !found.empty()) {
      GroupOutcome& outcome = found.mapped();
      if (outcome.is_complete)
        mine_.parts.erase(mine_.parts.begin(), mine_.parts.upper_bound(operation));
      if (!outcome.status.is_ok()) return outcome.status;
      const auto size = static_cast<std::size_t>(keys_.size);
      auto& parts = outcome.parts;
      if (parts.size() == 1 && parts.front().size() <= most_contributed(keys_.size))
        parts.resize(size, std::string(parts.front()));
      if (parts.size() != size) return Status(Code::kInternal, "a malformed outcome in the store");
      return std::move(parts);
    }
    if (deadline.has_passed() || is_interrupted()) return give_up(operation);
    if (!has_collector_) {
      const Status begun = collect(deadline);
      if (begun.code() == Code::kTimeout) return give_up(operation);
      MEMSPAN_PASS(begun);
    }
    notice.look();
    if (look) MEMSPAN_PASS(look_around(operation, look));
    if (looks % kLooksPerCheck != kLooksPerCheck - 1) continue;
    const Status place =
        store_.get_now(keys_.alive_key(rank_), Deadline::after(kLookEvery)).status();
    if (place.code() == Code::kNotFound) return this_member_left(rank_);
    if (!place.is_ok() && place.code() != Code::kTimeout) return place;
  }
}

// Waits for changes until the deadline, unless the operation is over or no member collects.
void StoreGroup::take_changes(std::uint64_t operation, const Deadline& deadline) {
  outcomes_.erase(outcomes_.begin(), outcomes_.lower_bound(operation));
  while (!outcomes_.contains(operation)) {
    auto change = changes_->pop(has_collector_ ? deadline : Deadline::after(Duration::zero()));
    if (!change) return;
    const bool is_set = change->event == StoreEvent::kSet;
    if (change->key == keys_.collector_key()) has_collector_ = is_set;
    if (change->key != keys_.outcome_key() || !is_set) continue;
    auto outcome = decode_record<GroupOutcome>(change->value);
    if (outcome.is_ok() && outcome->operation >= operation)
      outcomes_.emplace(outcome->operation, std::move(*outcome));  // the first one counts
  }
}

Status StoreGroup::look_around(std::uint64_t operation, const Look& look) {
  Status seen = look(collector_ == nullptr ? std::vector<int>() : collector_->missing(operation));
  if (seen.code() != Code::kPeerLost || collector_ == nullptr) return seen;
  collector_->fail(operation, seen);
  return Status::ok();  // the outcome follows
}

Status StoreGroup::give_up(std::uint64_t operation) {
  const auto members =
      list_records<GroupMember>(store_, keys_.member_prefix(), Deadline::after(kFarewell));
  if (!members.is_ok()) return end_of_wait("not all members of the group came");
  std::vector<int> missing;
  for (int rank = 0; rank < keys_.size; ++rank) {
    const auto member = members->find(rank);
    if (member == members->end() || !member->second.parts.contains(operation))
      missing.push_back(rank);
  }
  return end_of_wait(describe_missing(keys_.size, missing));
}

Status StoreGroup::enter(const Deadline& deadline) {
  if (has_left_) return this_member_left(rank_);
  if (changes_) return Status::ok();
  has_collector_ = false;
  Status entered = changes_.emplace(store_).watch(keys_.wait_prefix(), deadline);
  if (entered.is_ok()) entered = take_place(deadline);
  if (!entered.is_ok()) changes_.reset();
  return entered.annotate("entering the group");
}

Status StoreGroup::take_place(const Deadline& deadline) {
  if (keys_.is_created()) {
    const auto& member = keys_.created.members[static_cast<std::size_t>(rank_)];
    if (member.lease != mine_.lease) return rank_is_taken(rank_, member.name);
  } else {
    const std::string size = std::to_string(keys_.size);
    MEMSPAN_TRY_ASSIGN(const std::string others,
                       store_.compare_and_swap(keys_.size_key(), "", size, deadline), "the size");
    if (others != size)
      return {Code::kInvalidArgument,
              fmt::format("this member says that the group has {} members, others said {}", size,
                          others)};
    const std::string self = encode_record(GroupMember{.lease = mine_.lease, .name = mine_.name});
    MEMSPAN_TRY_ASSIGN(
        const std::string holder,
        store_.compare_and_swap(keys_.alive_key(rank_), "", self, deadline, KeyLife::kLease),
        "taking the place");
    MEMSPAN_TRY_ASSIGN(const GroupMember other, decode_record<GroupMember>(holder),
                       "taking the place");
    if (other.lease != mine_.lease) return rank_is_taken(rank_, other.name);
  }
  MEMSPAN_PASS_ASSIGN(auto before,
                      find_record<GroupMember>(store_, keys_.member_key(rank_), deadline));
  if (!before) return Status::ok();
  if (before->lease == mine_.lease && !before->has_left) {
    mine_.parts = std::move(before->parts);  // of another object of this member
    return Status::ok();
  }
  if (!keys_.is_created())
    static_cast<void>(store_.remove(keys_.alive_key(rank_), Deadline::after(kFarewell)));
  const Status gone = member_is_gone(rank_, before->name, before->has_left);
  return {Code::kPeerLost,
          gone.message() + "; a process that takes its place uses a group of another name"};
}

// Tries to become the collector.
Status StoreGroup::collect(const Deadline& deadline) {
  static_cast<void>(stop_collecting(deadline));
  const std::string self = fmt::format("{} {:016x}", rank_, new_nonce());
  MEMSPAN_TRY_ASSIGN(
      const std::string now,
      store_.compare_and_swap(keys_.collector_key(), "", self, deadline, KeyLife::kLease),
      "waiting for the others");
  has_collector_ = true;  // until a change says otherwise
  if (now != self) return Status::ok();
  collector_ = std::make_shared<Collector>(store_, keys_);
  Status started = collector_->start(deadline);
  if (!started.is_ok()) static_cast<void>(stop_collecting(Deadline::after(kFarewell)));
  return started;
}

// The next member that waits collects.
Status StoreGroup::stop_collecting(const Deadline& deadline) {
  if (collector_ == nullptr) return Status::ok();
  std::exchange(collector_, nullptr)->stop();
  return store_.remove(keys_.collector_key(), deadline).status();
}

Status StoreGroup::leave(Deadline deadline) {
  Status outside(Code::kNotFound, "this member is not in the group");
  if (has_left_) return outside;
  MEMSPAN_PASS_ASSIGN(auto found,
                      find_record<GroupMember>(store_, keys_.member_key(rank_), deadline));
  if (found) mine_ = std::move(*found);
  const bool is_inside =
      found ? mine_.lease == store_.lease() && !mine_.has_left : keys_.is_created();
  if (!is_inside) return outside;
  static_cast<void>(stop_collecting(deadline));
  has_left_ = true;
  mine_.has_left = true;
  MEMSPAN_TRY(store_.set(keys_.member_key(rank_), encode_record(mine_), deadline),
              "leaving the group");
  MEMSPAN_TRY(store_.remove(keys_.alive_key(rank_), deadline).status(), "leaving the group");
  return remove_all(deadline).annotate("leaving the group");
}

// Unless a member still exists.
Status StoreGroup::remove_all(const Deadline& deadline) {
  MEMSPAN_TRY_ASSIGN(const StoreListing alive, store_.list(keys_.alive_prefix(), deadline),
                     "looking for the others");
  for (const auto& [key, value] : alive)
    if (keys_.rank_of_alive(key) >= 0) return Status::ok();
  // The outcome may be as large as a listing.
  MEMSPAN_TRY(store_.remove(keys_.outcome_key(), deadline).status(), "removing the outcome");
  MEMSPAN_TRY_ASSIGN(const StoreListing rest, store_.list(keys_.group + "/", deadline),
                     "looking for the rest");
  for (const auto& [key, value] : rest)
    MEMSPAN_TRY(store_.remove(key, deadline).status(), "removing the rest");
  return Status::ok();
}

}  // namespace memspan::inline store
