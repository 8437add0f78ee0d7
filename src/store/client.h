// SPDX-License-Identifier: Apache-2.0
// One member's connection to the store: keys, waits, counters, compare-and-swap, watches, ranks and
// collectives.
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
#include "store/collective_service.h"
#include "store/key_value_store.h"
#include "store/security.h"
#include "store/store_address.h"
#include "store/wire.h"

namespace memspan {

// Where a store is and who comes to it. A value.
struct StoreAccess {
  StoreAddress endpoint;
  StoreSecurity security = {};
  std::string member = {};  // a name for messages ("PE 3")
  std::string job = {};     // empty: whatever the store serves
  int rank = -1;            // claimed, when a certificate names one
  // Silent for longer is dead, for both sides; the client then keeps a thread that pings. Zero:
  // only a connection that ends is. Not set: zero on one host, 3 s between hosts.
  std::optional<Duration> silence = {};
  std::uint64_t epoch = 0;  // of the store that is expected, when it was met before
};

// Thread-safe. In a child made by fork() every call returns kForked.
class StoreClient final : public KeyValueStore, public CollectiveService {
 public:
  // Connects, retrying while nobody listens yet, until the deadline: kTimeout then names the
  // endpoint and the last reason. Counts as connected only after the server's own welcome was
  // read. Not tried again: kAuth (the sides do not trust each other; or one wants TLS and the
  // other does not), kNotSupported (nothing was given to protect a connection to another host, or
  // the server speaks another version), kStale (another epoch), kInvalidArgument. Of several
  // addresses each attempt tries all, in their order.
  static Result<std::unique_ptr<StoreClient>> connect(const StoreAccess& access, Deadline deadline);
  // One attempt. kUnavailable also for some of what connect() finds out to be kAuth by trying
  // again.
  static Result<std::unique_ptr<StoreClient>> connect_once(const StoreAccess& access,
                                                           Deadline deadline);
  // Takes over a connected stream socket (one half of a socket pair whose other half a
  // StoreServer adopted).
  static Result<std::unique_ptr<StoreClient>> adopt(Fd socket, std::string_view member,
                                                    Deadline deadline);
  ~StoreClient() override;

  // The plain verbs (key_value_store.h). The store itself says when the time of a get is over; only
  // when it is silent does a get or a wait end a second after the deadline.
  Status set(std::string_view key, std::string_view value, Deadline deadline,
             KeyLife life = KeyLife::kPermanent) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;
  Result<std::string> get_now(std::string_view key, Deadline deadline) override;
  Result<std::string> compare_and_swap(std::string_view key, std::string_view expected,
                                       std::string_view desired, Deadline deadline,
                                       KeyLife life = KeyLife::kPermanent) override;
  Result<bool> remove(std::string_view key, Deadline deadline) override;
  Result<StoreListing> list(std::string_view prefix, Deadline deadline) override;
  Result<std::uint64_t> watch(std::string_view prefix, StoreWatcher watcher,
                              Deadline deadline) override;
  Status unwatch(std::uint64_t watch, Deadline deadline) override;
  void end() override;
  std::uint64_t lease() const override { return session(); }
  const std::string& member() const override;
  CollectiveService* collectives() override { return this; }

  // Adds to a decimal counter (a missing one is 0) and gives the sum. kInvalidArgument when the
  // value is not a number or the sum would overflow.
  Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline,
                           KeyLife life = KeyLife::kPermanent);
  // Appends to the value (a missing one is empty) and gives the new length.
  Result<std::uint64_t> append(std::string_view key, std::string_view value, Deadline deadline,
                               KeyLife life = KeyLife::kPermanent);
  // Waits until all keys, at most 65536, exist at the same time. kTimeout names the ones that do
  // not (the first 16).
  Status wait(const std::vector<std::string>& keys, Deadline deadline);

  // The recipes that the store answers in one round trip (store/recipes/ says what they promise).
  Result<StoreRank> take_rank(std::string_view scope, int rank, int size,
                              Deadline deadline) override;
  Status give_rank(std::string_view scope, Deadline deadline) override;
  // Takes part in the first epoch to which this member's rank has not contributed. What a caller
  // contributed that timed out stays, until another caller takes its rank.
  Result<std::vector<std::string>> allgather(std::string_view name, int rank, int size,
                                             std::string_view mine, Deadline deadline) override;
  Result<CreatedGroup> create_group(std::string_view name, int rank, int size,
                                    std::string_view mine, Deadline deadline) override;
  Result<std::vector<std::string>> group_allgather(std::string_view group, std::uint64_t operation,
                                                   int rank, int size, std::string_view mine,
                                                   Deadline deadline) override;
  // Leaves the group, or ends this member's ad-hoc all-gathers of that name.
  Status leave_group(std::string_view group, Deadline deadline) override;

  // Of the store and of this connection to it.
  std::uint64_t epoch() const;
  SessionId session() const;

 private:
  class Attempts;
  class Connection;
  StoreClient(std::unique_ptr<Connection> connection, std::string member);
  const std::string member_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace memspan
