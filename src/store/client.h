// SPDX-License-Identifier: Apache-2.0
// One member's connection to the store: keys, waits, counters, compare-and-swap, watches, ranks and
// meetings.
//
// Every call is a request and its answer on one connection; calls from several threads are
// served one after the other, and a call that waits does not keep other threads' calls waiting
// (requests carry an id and answers come in any order). When the connection is lost every
// pending and later call returns kStoreLost at once. A call that is not answered by its deadline
// returns kTimeout and leaves the connection usable; what it asked for may still happen.
//
// The connection is the member's session: keys it owns, its ranks and its places in groups go with
// it, at once when it ends, or when the member was silent for as long as it said.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/fd.h"
#include "core/status.h"
#include "store/endpoint.h"
#include "store/ranks.h"
#include "store/security.h"
#include "store/wire.h"

namespace memspan {

// Where a store is and who comes to it. A value.
struct StoreAccess {
  Endpoint endpoint;
  StoreSecurity security = {};
  std::string member = {};  // a name for messages ("PE 3")
  std::string job = {};     // empty: whatever the store serves
  int rank = -1;            // claimed, when a certificate names one
  // Silent for longer is dead, for both sides; the client then keeps a thread that pings. Zero:
  // only a connection that ends is. Not set: zero on one host, 3 s between hosts.
  std::optional<Duration> silence = {};
  std::uint64_t epoch = 0;  // of the store that is expected, when it was met before
};

// Who a key belongs to after it was changed.
enum class StoreOwner {
  kNobody,   // it stays (a set), or belongs to whom it did (everything else)
  kSession,  // it goes with this connection
};

// What a watch sees. A value.
struct StoreChange {
  StoreEvent event = StoreEvent::kSet;
  std::string key;
  std::string value;  // empty when removed
};
using StoreWatcher = std::function<void(const StoreChange&)>;

// Thread-safe. Keys are 1 to 8192 bytes, values at most 8 MiB; anything else is kInvalidArgument.
// In a child made by fork() every call returns kForked.
class StoreClient {
 public:
  // Connects, retrying while nobody listens yet, until the deadline: kTimeout then names the
  // endpoint and the last reason. Counts as connected only after the server's own welcome was
  // read. Not tried again: kAuth (the sides do not trust each other; or one wants TLS and the
  // other does not), kNotSupported (nothing was given to protect a connection to another host, or
  // the server speaks another version), kStale (another epoch), kInvalidArgument.
  static Result<std::unique_ptr<StoreClient>> connect(const StoreAccess& access, Deadline deadline);
  // Takes over a connected stream socket (one half of a socket pair whose other half a
  // StoreServer adopted).
  static Result<std::unique_ptr<StoreClient>> adopt(Fd socket, std::string_view member,
                                                    Deadline deadline);
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  Status set(std::string_view key, std::string_view value, Deadline deadline,
             StoreOwner owner = StoreOwner::kNobody);
  // Waits until the key exists. kTimeout names the key. The store itself says when the time is
  // over; only when it is silent does a get or a wait end a second after the deadline.
  Result<std::string> get(std::string_view key, Deadline deadline);
  // kNotFound when the key does not exist.
  Result<std::string> get_now(std::string_view key, Deadline deadline);
  // Adds to a decimal counter (a missing one is 0) and gives the sum. kInvalidArgument when the
  // value is not a number or the sum would overflow.
  Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline,
                           StoreOwner owner = StoreOwner::kNobody);
  // Appends to the value (a missing one is empty) and gives the new length.
  Result<std::uint64_t> append(std::string_view key, std::string_view value, Deadline deadline,
                               StoreOwner owner = StoreOwner::kNobody);
  // Sets the key to `desired` when its value is `expected`; gives the value that the key has
  // afterwards. A missing key counts as empty in both.
  Result<std::string> compare_and_swap(std::string_view key, std::string_view expected,
                                       std::string_view desired, Deadline deadline,
                                       StoreOwner owner = StoreOwner::kNobody);
  // True when the key existed.
  Result<bool> remove(std::string_view key, Deadline deadline);
  // Waits until all keys, at most 65536, exist at the same time. kTimeout names the ones that do
  // not (the first 16).
  Status wait(const std::vector<std::string>& keys, Deadline deadline);
  // Keys and values, by key; all together at most 8 MiB.
  using Listing = std::vector<std::pair<std::string, std::string>>;
  Result<Listing> list(std::string_view prefix, Deadline deadline);

  // From when this returns, `watcher` is called for every change of a key with the prefix, in
  // their order, on a thread of the client; it may call the client, but not destroy it. Gives the
  // watch's id.
  Result<std::uint64_t> watch(std::string_view prefix, StoreWatcher watcher, Deadline deadline);
  // No call of the watcher runs or begins after this returned (the watcher itself may end its
  // watch). kTimeout when a call of it did not end; the watch is over all the same.
  Status unwatch(std::uint64_t watch, Deadline deadline);

  // Takes a rank of a scope until the session ends: `rank`, or the lowest that is free when it is
  // -1. `size` 0: the store knows, or will be told.
  Result<StoreRank> take_rank(std::string_view scope, int rank, int size, Deadline deadline);
  // Gives it up before that; kNotFound when this session has none in the scope.
  Status give_rank(std::string_view scope, Deadline deadline);
  // Comes to an operation of a group as one of `size` and waits for all; gives everybody's bytes,
  // by rank. kTimeout names who did not come, kPeerLost who is gone. Group (group.h) counts the
  // operations.
  Result<std::vector<std::string>> meet(std::string_view group, std::uint64_t operation, int rank,
                                        int size, std::string_view mine, Deadline deadline);
  // The same under a name, of whoever comes as one of `size` who number themselves for it: the next
  // ones may be others. Comes to the first round that this member's rank has not come to, so that
  // one that failed counts. kUnavailable: somebody else comes as that rank.
  Result<std::vector<std::string>> gather(std::string_view name, int rank, int size,
                                          std::string_view mine, Deadline deadline);
  // The same, all or nothing: who gives up has not come, and who goes, or says another size, ends
  // it for all. Those who come are members of a new group from that moment, whose name is given:
  // for Group, and to leave().
  struct Assembly {
    std::string group;
    std::vector<std::string> parts;
  };
  Result<Assembly> assemble(std::string_view name, int rank, int size, std::string_view mine,
                            Deadline deadline);
  // Gives up the place in the group, or what this member waits for in gatherings of that name.
  Status leave(std::string_view group, Deadline deadline);

  // Ends the session as the destructor does: every pending and later call returns kStoreLost, and
  // no watcher runs or begins after this returned. Not for watchers.
  void end();

  // Of the store and of this connection to it.
  std::uint64_t epoch() const;
  SessionId session() const;

 private:
  class Connection;
  explicit StoreClient(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace memspan
