// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/group_by_verbs.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "core/mutex.h"
#include "store/collective_service.h"
#include "store/recipes/key_names.h"

namespace memspan {

// Records departures for all members, also for later ones. Thread-safe.
class StoreGroup::ByVerbs::Departures {
 public:
  Departures(KeyValueStore& store, std::string group) : store_(store), group_(std::move(group)) {}

  // Registers the rank and the name of a key's member.
  void add(const std::string& key, int rank, std::string_view member) {
    MutexLock lock(mutex_);
    members_[key] = {.rank = rank, .name = std::string(member)};
  }
  // The rank of an unknown member is read from the end of its key.
  void take(const StoreChange& change, std::string_view ranks_prefix) {
    Member member;
    {
      MutexLock lock(mutex_);
      auto found = members_.find(change.key);
      if (found == members_.end()) {
        const auto rank = rank_in_key(change.key, ranks_prefix);
        if (ranks_prefix.empty() || !rank.is_ok()) return;  // of another group
        found = members_.emplace(change.key, Member{.rank = *rank}).first;
      }
      if (const auto presence = GroupPresence::decode(change.value); presence.is_ok()) {
        found->second.name = presence->member;
      }
      member = found->second;
    }
    if (change.event == StoreEvent::kRemoved)
      static_cast<void>(write(member.rank, member.name, "its lease ended",
                              Deadline::after(std::chrono::seconds(1))));
  }
  // The first record counts. A lost store no longer needs it.
  Status write(int rank, std::string_view member, std::string_view because,
               const Deadline& deadline) {
    return store_
        .compare_and_swap(rank_key(group_ + "/gone/", rank), "",
                          fmt::format("rank {} ({}) is gone: {}", rank, member, because), deadline)
        .status();
  }

 private:
  struct Member {
    int rank = 0;
    std::string name = "unknown";
  };

  KeyValueStore& store_;
  const std::string group_;
  Mutex mutex_;
  std::map<std::string, Member> members_ MEMSPAN_GUARDED_BY(mutex_);
};

StoreGroup::ByVerbs::ByVerbs(KeyValueStore& store, std::string name, int rank, int size)
    : store_(store),
      name_(std::move(name)),
      rank_(rank),
      size_(size),
      changes_(store),
      departures_(std::make_shared<Departures>(store, name_)) {}

StoreGroup::ByVerbs::~ByVerbs() {
  stop_watching_members();
}

void StoreGroup::ByVerbs::stop_watching_members() {
  if (departure_watch_ == 0) return;
  static_cast<void>(
      store_.unwatch(std::exchange(departure_watch_, 0), Deadline::after(std::chrono::seconds(1))));
}

std::string StoreGroup::ByVerbs::key(std::string_view kind, int rank) const {
  return rank_key(fmt::format("{}/{}/", name_, kind), rank);
}

std::string StoreGroup::ByVerbs::prefix(std::uint64_t operation) const {
  return fmt::format("{}/op/{:016x}/", name_, operation);
}

std::string StoreGroup::ByVerbs::presence_key() const {
  if (!created_) return key("member", rank_);
  return created_->alive_key(created_->members[static_cast<std::size_t>(rank_)].nonce);
}

GroupPresence StoreGroup::ByVerbs::presence() const {
  return {.size = static_cast<std::uint32_t>(size_),
          .lease = store_.lease(),
          .member = store_.member()};
}

Result<std::vector<std::string>> StoreGroup::ByVerbs::allgather(std::uint64_t operation,
                                                                std::string_view mine,
                                                                const Deadline& deadline) {
  if (has_left_)
    return Status(Code::kPeerLost, fmt::format("this member, rank {}, is gone: it left", rank_));
  MEMSPAN_PASS(enter(deadline));
  MEMSPAN_TRY(store_.set(rank_key(prefix(operation), rank_), mine, deadline), "contributing");
  to_remove_.push_back(operation);
  // Contributions from before this member entered.
  MEMSPAN_TRY_ASSIGN(const StoreListing before, store_.list(prefix(operation), deadline),
                     "contributing");
  for (const auto& [key, value] : before) take_part(key, value);
  for (;;) {
    if (auto over = outcome(operation, deadline)) return std::move(*over);
    auto change = changes_.next(deadline);
    if (change.code() == Code::kTimeout)
      return Status(Code::kTimeout,
                    missing_ranks(static_cast<std::uint32_t>(size_), parts_[operation]));
    if (!change.is_ok()) return change.status();
    take(*change);
  }
}

Status StoreGroup::ByVerbs::enter(const Deadline& deadline) {
  if (has_entered_) return Status::ok();
  if (!std::exchange(is_watching_, true))
    MEMSPAN_TRY(changes_.watch(name_ + "/", deadline), "entering the group");
  if (auto members = store_.get_now(members_key(name_), deadline); members.is_ok())
    MEMSPAN_PASS(read_created(*members, deadline));
  else if (members.code() != Code::kNotFound)
    return members.status().annotate("entering the group");
  MEMSPAN_TRY(watch_members(deadline), "entering the group");
  MEMSPAN_TRY_ASSIGN(const StoreListing gone, store_.list(name_ + "/gone/", deadline),
                     "entering the group");
  for (const auto& [key, value] : gone)
    take({.event = StoreEvent::kSet, .key = key, .value = value});
  MEMSPAN_PASS(take_place(deadline));
  has_entered_ = true;
  return Status::ok();
}

Status StoreGroup::ByVerbs::read_created(const std::string& members, const Deadline& deadline) {
  MEMSPAN_TRY_ASSIGN(GroupMembers created, GroupMembers::decode(members), "entering the group");
  if (created.members.size() != static_cast<std::size_t>(size_))
    return {Code::kInvalidArgument,
            fmt::format("this member says that the group has {} members, others said {}", size_,
                        created.members.size())};
  created_ = std::move(created);
  for (int rank = 0; const auto& member : created_->members)
    departures_->add(created_->alive_key(member.nonce), rank++, member.name);
  MEMSPAN_TRY(watch_members(deadline), "entering the group");
  MEMSPAN_TRY_ASSIGN(const StoreListing alive, store_.list(created_->alive_prefix, deadline),
                     "entering the group");
  const std::map<std::string, std::string> there(alive.begin(), alive.end());
  for (const auto& member : created_->members)
    if (const std::string key = created_->alive_key(member.nonce); !there.contains(key))
      departures_->take({.event = StoreEvent::kRemoved, .key = key, .value = {}}, "");
  return Status::ok();
}

Status StoreGroup::ByVerbs::watch_members(const Deadline& deadline) {
  if (departure_watch_ != 0) return Status::ok();
  const std::string ranks = created_ ? std::string() : name_ + "/member/";
  const std::string prefix = created_ ? created_->alive_prefix : ranks;
  MEMSPAN_TRY_ASSIGN(departure_watch_,
                     store_.watch(
                         prefix,
                         [departures = departures_, ranks](const StoreChange& change) {
                           departures->take(change, ranks);
                         },
                         deadline),
                     "watching the members");
  return Status::ok();
}

Status StoreGroup::ByVerbs::take_place(const Deadline& deadline) {
  if (const auto gone = gone_.find(rank_); gone != gone_.end())
    return {Code::kPeerLost,
            gone->second + "; a process that takes its place uses a group of another name"};
  if (created_) return Status::ok();
  const std::string ranks = name_ + "/member/";
  MEMSPAN_TRY_ASSIGN(const StoreListing members, store_.list(ranks, deadline),
                     "entering the group");
  for (const auto& [key, value] : members) {
    MEMSPAN_TRY_ASSIGN(const int rank, rank_in_key(key, ranks), "entering the group");
    MEMSPAN_TRY_ASSIGN(const GroupPresence other, GroupPresence::decode(value),
                       "entering the group");
    if (other.size != static_cast<std::uint32_t>(size_))
      return {Code::kInvalidArgument,
              fmt::format("this member says that the group has {} members, others said {}", size_,
                          other.size)};
    departures_->add(key, rank, other.member);
  }
  const std::string wanted = presence().encode();
  MEMSPAN_TRY_ASSIGN(const std::string now,
                     store_.compare_and_swap(presence_key(), "", wanted, deadline, KeyLife::kLease),
                     "entering the group");
  if (now == wanted) return Status::ok();
  MEMSPAN_TRY_ASSIGN(const GroupPresence other, GroupPresence::decode(now), "entering the group");
  return {Code::kUnavailable,
          fmt::format("rank {} is taken by {}{}", rank_, other.member, kRankTaken)};
}

void StoreGroup::ByVerbs::take_part(std::string_view key, const std::string& value) {
  constexpr std::size_t kDigits = 16;
  const std::string before = name_ + "/op/";
  if (!key.starts_with(before) || key.size() < before.size() + kDigits + 1) return;
  std::uint64_t operation = 0;
  std::from_chars(key.data() + before.size(), key.data() + before.size() + kDigits, operation, 16);
  const auto rank = rank_in_key(key, prefix(operation));
  if (rank.is_ok()) parts_[operation][*rank] = value;
}

void StoreGroup::ByVerbs::take(const StoreChange& change) {
  const std::string gone = name_ + "/gone/";
  if (change.event == StoreEvent::kRemoved) return;
  if (!change.key.starts_with(gone)) return take_part(change.key, change.value);
  if (const auto rank = rank_in_key(change.key, gone); rank.is_ok())
    gone_.emplace(*rank, change.value);
}

std::optional<Result<std::vector<std::string>>> StoreGroup::ByVerbs::outcome(
    std::uint64_t operation, const Deadline& deadline) {
  Parts& parts = parts_[operation];
  if (parts.size() == static_cast<std::size_t>(size_)) {
    std::size_t bytes = 0;
    for (const auto& [rank, part] : parts) bytes += part.size() + sizeof(std::uint32_t);
    const Status fits = check_contributions(bytes, static_cast<std::uint32_t>(size_));
    std::vector<std::string> all;
    for (auto& [rank, part] : parts) all.push_back(std::move(part));
    forget_before(operation, deadline);
    parts_.erase(parts_.begin(), parts_.upper_bound(operation));
    if (!fits.is_ok()) return fits;
    return all;
  }
  // Another object of this member gave up the place while this one waits.
  if (const auto own = gone_.find(rank_); own != gone_.end())
    return Status(Code::kPeerLost, own->second);
  for (const auto& [rank, why] : gone_) {
    if (parts.contains(rank)) continue;
    if (Status status = lost(operation, rank, why, deadline); !status.is_ok()) return status;
    return outcome(operation, deadline);
  }
  return std::nullopt;
}

// A contribution from before the departure may not have been seen yet.
Status StoreGroup::ByVerbs::lost(std::uint64_t operation, int rank, const std::string& why,
                                 const Deadline& deadline) {
  auto part = store_.get_now(rank_key(prefix(operation), rank), deadline);
  if (part.is_ok()) parts_[operation][rank] = std::move(*part);
  if (part.code() == Code::kNotFound) return {Code::kPeerLost, why};
  return part.status();
}

// All have come to this operation, so no member is in an earlier one.
void StoreGroup::ByVerbs::forget_before(std::uint64_t operation, const Deadline& deadline) {
  std::erase_if(to_remove_, [&](std::uint64_t before) {
    return before < operation && store_.remove(rank_key(prefix(before), rank_), deadline).is_ok();
  });
}

Status StoreGroup::ByVerbs::leave(const Deadline& deadline) {
  const auto members = store_.get_now(members_key(name_), deadline);
  if (has_left_ || (!has_entered_ && !members.is_ok()))
    return {Code::kNotFound, "this member is not in the group"};
  MEMSPAN_PASS(enter(deadline));
  has_left_ = true;
  stop_watching_members();  // or it would write after the last member's clean-up
  MEMSPAN_TRY(departures_->write(rank_, store_.member(), "it left", deadline), "leaving the group");
  MEMSPAN_TRY(store_.remove(presence_key(), deadline).status(), "leaving the group");
  MEMSPAN_TRY_ASSIGN(const bool is_used, is_anybody_there(deadline), "leaving the group");
  if (is_used) return Status::ok();
  MEMSPAN_TRY_ASSIGN(const StoreListing rest, store_.list(name_ + "/", deadline),
                     "leaving the group");
  for (const auto& [key, value] : rest)
    MEMSPAN_TRY(store_.remove(key, deadline).status(), "leaving the group");
  return Status::ok();
}

Result<bool> StoreGroup::ByVerbs::is_anybody_there(const Deadline& deadline) {
  MEMSPAN_TRY_ASSIGN(const StoreListing there,
                     store_.list(created_ ? created_->alive_prefix : name_ + "/member/", deadline),
                     "looking");
  if (!created_) return !there.empty();
  for (const auto& member : created_->members)
    for (const auto& [key, value] : there)
      if (key == created_->alive_key(member.nonce)) return true;
  return false;
}

}  // namespace memspan
