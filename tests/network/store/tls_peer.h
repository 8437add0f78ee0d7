// SPDX-License-Identifier: Apache-2.0
// The two ends of a TLS connection spoken with OpenSSL alone and without any check of ours, to see
// what the store's own ends do to such a peer; and what the store writes to the log meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "certificates.h"
#include "core/fd.h"
#include "net/endpoint.h"

namespace memspan {

// What the spec allows for a refusal. Sanitizers and emulators make everything slower.
#ifdef MEMSPAN_TEST_IS_SANITIZED
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif
#ifdef MEMSPAN_TEST_IS_EMULATED
inline constexpr bool kIsEmulated = true;
#else
inline constexpr bool kIsEmulated = false;
#endif
inline constexpr std::chrono::seconds kRefusalTime{kIsSanitized || kIsEmulated ? 10 : 1};

// A value. Trusts everybody.
struct TlsPeerWish {
  std::optional<Issued> shows = {};  // nothing: no certificate
  std::vector<Issued> chain = {};
  int oldest = 0;  // version; 0: any
  int newest = 0;
};

// Connects when made. One thread at a time.
class TlsPeerClient {
 public:
  TlsPeerClient(const Endpoint& endpoint, const TlsPeerWish& wish);

  // False when the handshake failed on this side, which in TLS 1.3 does not tell what the server
  // thinks.
  bool shakes_hands();
  bool send(std::string_view bytes);
  // What comes until the connection ends.
  std::string receive_all();
  // Asks for new keys, on both sides.
  bool update_keys();
  // "certificate expired": the alert that the server sent, if any.
  const std::string& alert() const { return alert_; }

 private:
  Fd socket_;
  TlsHandle<SSL_CTX> context_;
  TlsHandle<SSL> ssl_;
  std::string alert_;
};

// Serves handshakes on a port of loopback, on a thread of its own, until it is destroyed.
class TlsPeerServer {
 public:
  explicit TlsPeerServer(const TlsPeerWish& wish);
  ~TlsPeerServer();
  TlsPeerServer(const TlsPeerServer&) = delete;
  TlsPeerServer& operator=(const TlsPeerServer&) = delete;

  const Endpoint& endpoint() const { return endpoint_; }
  int connections() const { return connections_.load(); }
  // Bytes that clients sent under TLS after a handshake.
  std::size_t received() const { return received_.load(); }

 private:
  void serve();
  void serve(Fd socket);

  TlsHandle<SSL_CTX> context_;
  Fd listener_;
  Endpoint endpoint_;
  std::atomic<int> connections_{0};       // pairs with nothing: a count to look at
  std::atomic<std::size_t> received_{0};  // the same
  std::thread thread_;
};

// Collects what the library logs while it lives; at most one at a time.
class LogLines {
 public:
  LogLines();
  ~LogLines();
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  // Waits until a line has `part` in it. False when none comes.
  bool waits_for(std::string_view part) const;
  std::string all() const;
};

}  // namespace memspan
