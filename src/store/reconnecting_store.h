// SPDX-License-Identifier: Apache-2.0
// A key-value store whose lease outlives the connection. When the store is lost, a thread
// reconnects until it succeeds, and restores this member's state in the new session.
//
//                lost                  a session begins
//   connected ─────────► away: attempt ─────────────────► renewing ──► connected
//                          ▲     │ pause                     │ lost
//                          └─────┴───────────────────────────┘
//
// Calls wait for the store until their deadline and then return kStoreLost. Its message has the
// time and the cause of the loss, and why the last attempt failed. A call whose deadline has passed
// returns that at once. Interrupted calls are repeated, except compare_and_swap(), which may have
// taken effect. Watches continue in the new session, but miss the changes in between. The keys
// under the lease are lost, and renewals set them again.
#pragma once

#include "store/key_value_store.h"

namespace memspan::inline store {

// Thread-safe. In a child made by fork() every call returns kForked.
class ReconnectingStore : public KeyValueStore {
 public:
  struct Options {
    // Makes one attempt to begin a session, on the store's thread. Any failure is retried.
    std::function<Result<std::unique_ptr<KeyValueStore>>(Deadline)> connect;
    std::string where;  // for messages
    // Between attempts; doubled each time, plus or minus a random quarter.
    Duration first_pause = std::chrono::milliseconds(100);
    Duration longest_pause = std::chrono::seconds(2);
    // Time after a reconnection for the other members to reconnect.
    Duration settling = std::chrono::seconds(5);
  };
  // Restores a member's state. Both are called on the store's thread.
  struct Renewal {
    // Restores the state in a new session, after the watches and before all other calls. It may not
    // call this object. kStoreLost and kTimeout abandon the session. May be empty.
    std::function<Status(KeyValueStore& session, Deadline deadline)> renew;
    // Called once a new session has lasted for `settling`. May be empty.
    std::function<void()> settle = {};
  };

  // Continues from an open session.
  static Result<std::unique_ptr<ReconnectingStore>> start(std::unique_ptr<KeyValueStore> first,
                                                          Options options);

  // For all later sessions, in the order of the renewals' numbers.
  virtual std::uint64_t add_renewal(Renewal renewal) = 0;
  // After this returns, no call of it runs or begins. Renewals may not call this.
  virtual void remove_renewal(std::uint64_t renewal) = 0;
  // Ok during a session; else the status of a call whose deadline has passed.
  virtual Status state() const = 0;
};

}  // namespace memspan::inline store
