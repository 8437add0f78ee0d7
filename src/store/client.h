// SPDX-License-Identifier: Apache-2.0
// One member's connection to the store: keys, waits, counters, compare-and-swap, watches and ranks.
//
// Every call is a request and its answer on one connection. Calls from several threads are served
// one after the other, but a waiting call does not block other threads. Requests carry an id, and
// answers come in any order. When the connection is lost, every pending and later call returns
// kStoreLost at once. A call that is not answered by its deadline returns kTimeout and leaves the
// connection usable; the store may still perform it.
//
// The connection is the member's session. When it ends, or the member is silent for its declared
// time, the store removes its leased keys and its ranks.
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
#include "net/security.h"
#include "store/key_value_store.h"
#include "store/rank_service.h"
#include "store/store_address.h"
#include "store/wire.h"

namespace memspan {

// The address of a store and the member that connects to it. A value.
struct StoreAccess {
  StoreAddress endpoint;
  StoreSecurity security = {};
  std::string member = {};  // a name for messages ("PE 3")
  std::string job = {};     // empty: the store's job
  int rank = -1;            // claimed, if a certificate names one
  // Each side treats the other as dead after this silence; the client then keeps a thread that
  // pings. Zero: only the end of the connection counts. Not set: zero on one host, 3 s between
  // hosts.
  std::optional<Duration> silence = {};
  std::uint64_t epoch = 0;  // of the expected store; 0: any
  // A process that listens at the address but is not a store of this job's is taken for one that
  // ends, or is about to be replaced, for this long.
  Duration refusal_patience = std::chrono::milliseconds(800);
  // Called before each attempt to connect, on its thread: a process that may host the store tries
  // to.
  std::function<void()> before_attempt = {};
};

// Thread-safe. In a child made by fork() every call returns kForked.
class StoreClient final : public KeyValueStore, public RankService {
 public:
  // Connects, and retries until the deadline while no process listens; kTimeout then names the
  // endpoint and the last reason. The client is connected only after it has read the server's
  // welcome. kAuth (no mutual trust, or only one side uses TLS), kStale (another epoch),
  // kNotSupported and kInvalidArgument are not retried. kNotSupported means that nothing protects a
  // connection to another host, or that the server speaks another version. Each attempt tries all
  // addresses in order.
  static Result<std::unique_ptr<StoreClient>> connect(const StoreAccess& access, Deadline deadline);
  // Makes one attempt. Returns kUnavailable for some failures that connect() identifies as kAuth by
  // retrying.
  static Result<std::unique_ptr<StoreClient>> connect_once(const StoreAccess& access,
                                                           Deadline deadline);
  // Takes over a connected stream socket (one half of a socket pair whose other half a
  // StoreServer adopted).
  static Result<std::unique_ptr<StoreClient>> adopt(Fd socket, std::string_view member,
                                                    Deadline deadline);
  ~StoreClient() override;

  // The plain verbs (key_value_store.h). The store itself reports the timeout of a get. If it is
  // silent, a get or a wait ends a second after the deadline.
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
  RankService* rank_service() override { return this; }

  // Adds to a decimal counter (a missing one is 0) and returns the sum. kInvalidArgument if the
  // value is not a number or the sum would overflow.
  Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline,
                           KeyLife life = KeyLife::kPermanent);
  // Appends to the value (a missing one is empty) and returns the new length.
  Result<std::uint64_t> append(std::string_view key, std::string_view value, Deadline deadline,
                               KeyLife life = KeyLife::kPermanent);
  // Waits until all keys, at most 65536, exist at the same time. kTimeout names the missing ones
  // (the first 16).
  Status wait(const std::vector<std::string>& keys, Deadline deadline);

  // As in recipes/rank_recipe.h.
  Result<StoreRank> take_rank(std::string_view scope, int rank, int size,
                              Deadline deadline) override;
  Status give_rank(std::string_view scope, Deadline deadline) override;

  // The epoch of the store, and the session of this connection.
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
