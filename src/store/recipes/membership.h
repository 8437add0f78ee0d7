// SPDX-License-Identifier: Apache-2.0
// Recipe: the members of an open group, and events when members join and leave it. A group may have
// any members at any time, and their number is not fixed.
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
    kJoined,  // or has another value now
    kLeft,    // also when its lease has ended
  };
  Kind kind = Kind::kJoined;
  std::string id;
  std::string value;  // the last one
};

// One member's place. One thread at a time, members() from any thread. The store must outlive it.
class StoreMembership {
 public:
  // Runs on a thread of the store, one call at a time; may call the store.
  using Listener = std::function<void(const MembershipEvent&)>;

  // Calls `listener` for every present member and for every later change, this member's own
  // included. Each member's events come in order. kUnavailable if another member has the id.
  static Result<std::unique_ptr<StoreMembership>> join(KeyValueStore& store, std::string_view group,
                                                       std::string_view id, std::string_view value,
                                                       Listener listener, Deadline deadline);
  // Leaves if leave() was not called and the store is reachable.
  ~StoreMembership();
  StoreMembership(const StoreMembership&) = delete;
  StoreMembership& operator=(const StoreMembership&) = delete;

  // Notifies the others. After this returns, no listener runs or begins.
  Status leave(Deadline deadline);
  // Ids and values of the present members, as far as this one knows.
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
