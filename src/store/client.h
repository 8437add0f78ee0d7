// SPDX-License-Identifier: Apache-2.0
// One member's connection to the store: keys, waits, counters and compare-and-swap.
//
// Every call is a request and its answer on one connection; calls from several threads are
// served one after the other, and a blocking get does not keep other threads' calls waiting
// (requests carry an id and answers come in any order). When the connection is lost every
// pending and later call returns kStoreLost at once. A call that is not answered by its deadline
// returns kTimeout and leaves the connection usable; what it asked for may still happen.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/fd.h"
#include "core/status.h"
#include "store/endpoint.h"

namespace memspan {

// Thread-safe. Keys are 1 to 2048 bytes, values at most 64 MiB; anything else is kInvalidArgument.
// Not for a child made by fork(): it would share the parent's stream.
class StoreClient {
 public:
  // Connects, retrying while nobody listens yet, until the deadline: kTimeout then names the
  // endpoint and the last reason. `member` is a name for messages ("PE 3"). Counts as connected
  // only after the server's own welcome was read. kNotSupported when the address is not loopback
  // (the store has no TLS yet) or the server speaks another version.
  static Result<std::unique_ptr<StoreClient>> connect(const Endpoint& endpoint,
                                                      std::string_view member, Deadline deadline);
  // Takes over a connected stream socket (one half of a socket pair whose other half a
  // StoreServer adopted).
  static Result<std::unique_ptr<StoreClient>> adopt(Fd socket, std::string_view member,
                                                    Deadline deadline);
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  Status set(std::string_view key, std::string_view value, Deadline deadline);
  // Waits until the key exists. kTimeout names the key. The store itself says when the time is
  // over; only when it is silent does a get or a wait end a second after the deadline.
  Result<std::string> get(std::string_view key, Deadline deadline);
  // kNotFound when the key does not exist.
  Result<std::string> get_now(std::string_view key, Deadline deadline);
  // Adds to a decimal counter (a missing one is 0) and gives the sum. kInvalidArgument when the
  // value is not a number or the sum would overflow.
  Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline);
  // Appends to the value (a missing one is empty) and gives the new length.
  Result<std::uint64_t> append(std::string_view key, std::string_view value, Deadline deadline);
  // Sets the key to `desired` when its value is `expected`; gives the value that the key has
  // afterwards. A missing key counts as empty in both.
  Result<std::string> compare_and_swap(std::string_view key, std::string_view expected,
                                       std::string_view desired, Deadline deadline);
  // True when the key existed.
  Result<bool> remove(std::string_view key, Deadline deadline);
  // Waits until all keys, at most 65536, exist at the same time. kTimeout names the ones that do
  // not (the first 16).
  Status wait(const std::vector<std::string>& keys, Deadline deadline);

 private:
  class Connection;
  explicit StoreClient(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace memspan
