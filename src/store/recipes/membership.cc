// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace memspan {
namespace {

// In front of each value, so that no two members write the same.
constexpr std::size_t kLeaseDigits = 16;

}  // namespace

// Turns the changes of keys into events.
class StoreMembership::Members {
 public:
  Members(std::string prefix, Listener listener)
      : prefix_(std::move(prefix)), listener_(std::move(listener)) {}

  // Called by the store's thread. Changes wait in a queue until begin() has delivered the listing.
  void take(const StoreChange& change) {
    MutexLock in_order(delivery_);
    if (has_begun_)
      deliver(change);
    else
      early_.push_back(change);
  }
  void begin(const StoreListing& listing) {
    MutexLock in_order(delivery_);
    for (const auto& [key, value] : listing)
      deliver({.event = StoreEvent::kSet, .key = key, .value = value});
    for (const StoreChange& change : early_) deliver(change);
    early_.clear();
    has_begun_ = true;
  }
  std::map<std::string, std::string> there() const {
    MutexLock lock(mutex_);
    return there_;
  }

 private:
  void deliver(const StoreChange& change) MEMSPAN_REQUIRES(delivery_) {
    MembershipEvent event{
        .id = change.key.substr(prefix_.size()),
        .value = change.value.substr(std::min(kLeaseDigits, change.value.size()))};
    {
      MutexLock lock(mutex_);
      const auto found = there_.find(event.id);
      if (change.event == StoreEvent::kRemoved) {
        if (found == there_.end()) return;
        event.kind = MembershipEvent::Kind::kLeft;
        event.value = std::move(found->second);
        there_.erase(found);
      } else {
        if (found != there_.end() && found->second == event.value) return;
        there_[event.id] = event.value;
      }
    }
    listener_(event);
  }

  const std::string prefix_;
  const Listener listener_;
  Mutex delivery_;  // held while the listener runs
  bool has_begun_ MEMSPAN_GUARDED_BY(delivery_) = false;
  std::vector<StoreChange> early_ MEMSPAN_GUARDED_BY(delivery_);
  mutable Mutex mutex_;
  std::map<std::string, std::string> there_ MEMSPAN_GUARDED_BY(mutex_);
};

StoreMembership::StoreMembership(KeyValueStore& store, std::string prefix, std::string id,
                                 Listener listener)
    : store_(store),
      prefix_(std::move(prefix)),
      id_(std::move(id)),
      members_(std::make_shared<Members>(prefix_, std::move(listener))) {}

StoreMembership::~StoreMembership() {
  if (is_in_) static_cast<void>(leave(Deadline::after(std::chrono::seconds(1))));
}

Result<std::unique_ptr<StoreMembership>> StoreMembership::join(
    KeyValueStore& store, std::string_view group, std::string_view id, std::string_view value,
    Listener listener, Deadline deadline) {
  std::unique_ptr<StoreMembership> joined(new StoreMembership(
      store, fmt::format("{}/here/", group), std::string(id), std::move(listener)));
  MEMSPAN_TRY(joined->enter(value, deadline), fmt::format("joining \"{}\"", group));
  return joined;
}

Status StoreMembership::enter(std::string_view value, const Deadline& deadline) {
  const std::string key = prefix_ + id_;
  const std::string mine = fmt::format("{:016x}{}", store_.lease(), value);
  MEMSPAN_TRY_ASSIGN(const std::string now,
                     store_.compare_and_swap(key, "", mine, deadline, KeyLife::kLease),
                     "taking the place");
  if (now != mine)
    return {Code::kUnavailable, fmt::format("another member is registered as \"{}\"", id_)};
  is_in_ = true;
  MEMSPAN_TRY_ASSIGN(
      watch_,
      store_.watch(
          prefix_, [members = members_](const StoreChange& change) { members->take(change); },
          deadline),
      "watching the members");
  MEMSPAN_TRY_ASSIGN(const StoreListing listing, store_.list(prefix_, deadline),
                     "reading the members");
  members_->begin(listing);
  return Status::ok();
}

Status StoreMembership::leave(Deadline deadline) {
  if (!is_in_) return {Code::kNotFound, fmt::format("\"{}\" is not registered", id_)};
  is_in_ = false;
  if (watch_ != 0) MEMSPAN_TRY(store_.unwatch(watch_, deadline), "leaving");
  return store_.remove(prefix_ + id_, deadline).status().annotate("leaving");
}

std::map<std::string, std::string> StoreMembership::members() const {
  return members_->there();
}

}  // namespace memspan
