// SPDX-License-Identifier: Apache-2.0
// The store's process side: sockets and one thread around the pure StoreState.
//
// Until TLS exists the server listens on loopback addresses only and refuses any other.
#pragma once

#include <memory>
#include <string>

#include "core/fd.h"
#include "core/status.h"
#include "store/endpoint.h"

namespace memspan {

// Thread-safe. Runs one thread of its own from creation to destruction; destruction closes all
// connections, so that every client's pending call returns kStoreLost.
class StoreServer {
 public:
  // Listens at `endpoint`; port 0 picks a free port. kUnavailable names the endpoint when it is
  // taken, kNotSupported when the address is not loopback.
  static Result<std::unique_ptr<StoreServer>> listen(const Endpoint& endpoint);
  // Serves adopted sockets only.
  static Result<std::unique_ptr<StoreServer>> without_listener();
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Serves one connected stream socket like an accepted one.
  Status adopt(Fd socket);
  // Where it listens, with the real port. Only after listen().
  const Endpoint& endpoint() const;

 private:
  class Loop;
  explicit StoreServer(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace memspan
