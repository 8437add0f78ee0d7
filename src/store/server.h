// SPDX-License-Identifier: Apache-2.0
// The store's process side: sockets, TLS and one thread around the pure StoreState.
//
//   listener ──► admission control ──► session (handshake, hello) ──► StoreState
//   adopt()  ─────────────────────────► session (hello) ─────────────►
//
// An allocation that fails ends the session that it was for, and no other. Nothing is read or
// handshaken on the accept path, and connections that are not authenticated are bounded in number,
// in memory and in time. Refused connections are logged, at most a line a second.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/fd.h"
#include "core/status.h"
#include "store/admission.h"
#include "store/endpoint.h"
#include "store/quota.h"
#include "store/security.h"
#include "store/session.h"

namespace memspan {

// A value.
struct StoreServerOptions {
  StoreSecurity security = {};
  std::string job = {};  // members of another job are refused; empty: any
  StoreQuota quota = {};
  StorePatience patience = {};
  StoreAdmission::Limits admission = {};
  std::map<std::string, std::uint32_t> sizes = {};  // of scopes of ranks, where the host knows them
};

// Thread-safe. Runs one thread of its own from creation to destruction; destruction closes all
// connections, so that every client's pending call returns kStoreLost.
class StoreServer {
 public:
  // Listens at `endpoint`; port 0 picks a free port. kUnavailable names the endpoint when it is
  // taken, kInvalidArgument what is wrong with a certificate.
  static Result<std::unique_ptr<StoreServer>> listen(const Endpoint& endpoint,
                                                     StoreServerOptions options = {});
  // Serves adopted sockets only.
  static Result<std::unique_ptr<StoreServer>> without_listener(StoreServerOptions options = {});
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Serves one connected stream socket, without TLS: both its ends are known.
  Status adopt(Fd socket);
  // Where it listens, with the real port. Only after listen().
  const Endpoint& endpoint() const;
  // The secret that it published or was given; empty with certificates and without TLS.
  const std::string& secret() const;
  // Reads certificates, keys and lists again (the same kind as before). They count for who connects
  // after the return; connections whose certificate is not good any more are closed by then. On
  // failure nothing changes.
  Status reload(const StoreSecurity& security);

 private:
  class Loop;
  explicit StoreServer(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace memspan
