// SPDX-License-Identifier: Apache-2.0
// The store's server: sockets, TLS and one thread around the pure StoreState.
//
//   listener ──► admission control ──► session (handshake, hello) ──► StoreState
//   adopt()  ─────────────────────────► session (hello) ─────────────►
//
// A failed allocation ends only the session that it was for. The accept path neither reads nor
// shakes hands. Unauthenticated connections are limited in number, in memory and in time. Refused
// connections are logged, at most a line a second.
#pragma once

#include "core/fd.h"
#include "net/endpoint.h"
#include "net/security.h"
#include "store/admission.h"
#include "store/charges.h"

namespace memspan::inline store {

// A value.
struct StoreServerOptions {
  StoreSecurity security = {};
  std::string job = {};  // members of another job are refused; empty: any
  StoreQuota quota = {};
  StorePatience patience = {};
  StoreAdmission::Limits admission = {};
  std::map<std::string, std::uint32_t> sizes = {};  // of scopes of ranks, if the host knows them
};

// Content and counters of a store. A value.
struct StoreStatistics {
  std::size_t members = 0;      // sessions after the hello
  std::size_t connections = 0;  // also unauthenticated ones
  std::size_t keys = 0;
  std::size_t key_bytes = 0;  // of keys and values
  std::size_t waits = 0;
  std::size_t watches = 0;
  std::size_t session_bytes = 0;  // memory kept for sessions
  std::size_t unread_bytes = 0;   // answers and events that members have not read yet
  std::uint64_t accepted = 0;     // connections ever
  std::uint64_t refused = 0;      // of them, not authenticated
  std::uint64_t requests = 0;
};

// Thread-safe. Runs one thread from creation to destruction. Destruction closes all connections, so
// that every client's pending call returns kStoreLost.
class StoreServer {
 public:
  // Listens at `endpoint`; port 0 picks a free port. kUnavailable names an endpoint that is taken,
  // kInvalidArgument describes a faulty certificate.
  static Result<std::unique_ptr<StoreServer>> listen(const Endpoint& endpoint,
                                                     StoreServerOptions options = {});
  // Serves adopted sockets only.
  static Result<std::unique_ptr<StoreServer>> without_listener(StoreServerOptions options = {});
  virtual ~StoreServer() = default;

  // Serves one connected stream socket, without TLS: both its ends are known.
  virtual Status adopt(Fd socket) = 0;
  // The address it listens at, with the real port. Only after listen().
  virtual const Endpoint& endpoint() const = 0;
  // The published or given secret; empty with certificates and without TLS.
  virtual const std::string& secret() const = 0;
  // Reloads certificates, keys and lists (the same kind as before). After the return they apply to
  // new connections, and connections whose certificate is no longer valid are closed. On failure
  // nothing changes.
  virtual Status reload(const StoreSecurity& security) = 0;
  // Waits for the store's thread; kTimeout if that is busy for longer than `patience`.
  virtual Result<StoreStatistics> statistics(Duration patience) = 0;
};

}  // namespace memspan::inline store
