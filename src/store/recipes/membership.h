// SPDX-License-Identifier: Apache-2.0
// Recipe: who is in an open group, and events when members join and leave it. A group may have any
// members at any time; nobody says beforehand how many.
//
//   GROUP/here/ID = value      under the member's lease
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "store/key_value_store.h"

namespace memspan {

// A value.
struct MembershipEvent {
  enum class Kind {
    kJoined,  // or is there with another value
    kLeft,    // also when its lease has ended
  };
  Kind kind = Kind::kJoined;
  std::string id;
  std::string value;  // the last one
};

// One member's place. One thread at a time, members() from any. The store must outlive it.
class StoreMembership {
 public:
  // Runs on a thread of the store, one at a time; may call the store.
  using Listener = std::function<void(const MembershipEvent&)>;

  // `listener` is told of every member that is there and of every change from then on, this
  // member's own included; each member's events come in order. kUnavailable when another member has
  // the id.
  static Result<std::unique_ptr<StoreMembership>> join(KeyValueStore& store, std::string_view group,
                                                       std::string_view id, std::string_view value,
                                                       Listener listener, Deadline deadline);
  // Leaves if leave() was not called, as far as the store is there.
  ~StoreMembership();
  StoreMembership(const StoreMembership&) = delete;
  StoreMembership& operator=(const StoreMembership&) = delete;

  // The others are told. No listener runs or begins after this returned.
  Status leave(Deadline deadline);
  // Ids and values of those who are there, as far as this member has been told.
  std::map<std::string, std::string> members() const;

 private:
  class Members;
  StoreMembership(KeyValueStore& store, std::string prefix, std::string id, Listener listener);
  Status enter(std::string_view value, const Deadline& deadline);

  KeyValueStore& store_;
  const std::string prefix_;
  const std::string id_;
  const std::shared_ptr<Members> members_;  // shared with the watcher
  std::uint64_t watch_ = 0;
  bool is_in_ = false;
};

}  // namespace memspan
