// SPDX-License-Identifier: Apache-2.0
// Limits of one store. A request beyond them returns kOutOfMemory and changes nothing.
//
//   all  ├───────────── three quarters: free for all ─────────────┤── reserve ──┤
//
// A session may hold `assured` of a quantity, also from the reserve. More than that comes from the
// three quarters, and it may then hold at most as much as they have left. So one session leaves
// half of them to the others, and the reserve serves sessions that come after many large ones.
#pragma once

#include <map>

#include "store/wire.h"

namespace memspan::inline store {

// The limits of one quantity. A value.
struct StoreShare {
  const char* what;  // the quantity, for messages
  std::size_t all;   // of all sessions
  std::size_t one;   // of one session
  std::size_t assured;
};

// A value.
struct StoreQuota {
  std::size_t keys = std::size_t{128} << 10;
  std::size_t bytes = std::size_t{1} << 30;  // of keys and values
  // Memory used on behalf of one session, and of all (StoreCharges). One session's limit fits two
  // waits for as many keys as a request may name.
  std::size_t session = std::size_t{64} << 20;
  std::size_t sessions = std::size_t{512} << 20;
  // Enough for a process of a job, pool or transfer, which has a few keys and watches.
  std::size_t assured_keys = 64;
  std::size_t assured_bytes = std::size_t{64} << 10;
  // Unsent answers to all sessions; StorePatience limits those to one. Beyond it, the session with
  // the most ends.
  std::size_t queued = std::size_t{1} << 30;

  StoreShare key_share() const { return {"keys", keys, keys, assured_keys}; }
  StoreShare value_share() const {
    return {"keys and values, in bytes", bytes, bytes, assured_bytes};
  }
  StoreShare memory_share() const {
    return {"memory for waits, watches and ranks, in bytes", sessions, session, assured_bytes};
  }
};

// Limits of time and memory for a peer. A value.
struct StorePatience {
  Duration hello = std::chrono::seconds(5);    // from the connection to the whole hello
  Duration frame = std::chrono::seconds(10);   // from a frame's first byte to its last, each way
  std::size_t queued = std::size_t{64} << 20;  // of answers that it has not read, in memory
};

// A charge that another one replaces. A value.
struct FormerCharge {
  SessionId session = 0;
  std::size_t amount = 0;
};

// How much of one quantity each session holds: of the memory for waits, watches and ranks, with the
// nodes of their maps; of the keys; of their bytes. A charge outlives its session if the charged
// thing does: a key without a lease. One thread at a time.
class StoreCharges {
 public:
  explicit StoreCharges(StoreShare share) : share_(share) {}

  // kOutOfMemory, with the reason, if the session may not hold so much more.
  Status check(SessionId session, std::size_t more, FormerCharge former = {}) const;
  // Also beyond the limits, for the consequences of an allowed request.
  void add(SessionId session, std::size_t amount);
  // `amount` must have been added.
  void remove(SessionId session, std::size_t amount);
  std::size_t all() const { return all_; }

 private:
  const StoreShare share_;
  std::size_t all_ = 0;
  std::map<SessionId, std::size_t> by_session_;
};

}  // namespace memspan::inline store
