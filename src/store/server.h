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

#include <array>
#include <exception>

#include "net/tcp.h"
#include "store/admission.h"
#include "store/authentication.h"
#include "store/headroom.h"
#include "store/server_session.h"

namespace memspan {

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
class StoreServer final : public StoreSession::Owner, NotCopyable {
 public:
  // Listens at `endpoint`; port 0 picks a free port. kUnavailable names an endpoint that is taken,
  // kInvalidArgument describes a faulty certificate.
  static Result<std::unique_ptr<StoreServer>> listen(const Endpoint& endpoint,
                                                     StoreServerOptions options = {});
  // Serves adopted sockets only.
  static Result<std::unique_ptr<StoreServer>> without_listener(StoreServerOptions options = {});
  ~StoreServer();

  // Serves one connected stream socket, without TLS: both its ends are known.
  Status adopt(Fd socket);
  // The address it listens at, with the real port. Only after listen().
  const Endpoint& endpoint() const { return endpoint_; }
  // The published or given secret; empty with certificates and without TLS.
  const std::string& secret() const { return secret_; }
  // Reloads certificates, keys and lists (the same kind as before). After the return they apply to
  // new connections, and connections whose certificate is no longer valid are closed. On failure
  // nothing changes.
  Status reload(const StoreSecurity& security);
  // Waits for the store's thread; kTimeout if that is busy for longer than `patience`.
  Result<StoreStatistics> statistics(Duration patience);

 private:
  // All that follows runs in the loop's thread.
  StoreServer(StoreAuthentication authentication, StoreServerOptions options);
  static Result<std::unique_ptr<StoreServer>> start(std::optional<TcpListener> listener,
                                                    StoreAuthentication authentication,
                                                    StoreServerOptions options);
  Status start_listening(Fd socket);
  void stop() noexcept;
  StoreStatistics count() const;
  void add(SessionId id, std::unique_ptr<ByteChannel> stream);
  void end(SessionId id, const Status& why);
  void trust(std::shared_ptr<const TlsContext> tls);

  // Takes at most kAcceptBatch connections off the queue, so that existing ones get their turn; the
  // loop reads from them later.
  void accept_some();
  // No descriptor is left: so the peer does not wait.
  void accept_and_close();
  void accept(Fd socket);

  // StoreSession::Owner.
  StoreWelcome greet(SessionId from, const StoreHello& hello, const ByteChannel& stream) override;
  void spoke(SessionId from) override;
  void serve(SessionId from, StoreRequest request) override;
  void closed(SessionId id, const Status& why) override;
  void free_headroom() override { headroom_.free(); }
  bool has_memory(std::size_t bytes) const override { return Headroom::is_there(bytes); }

  void deliver(StoreAnswers answers);
  void drop_slowest();
  void arm_expiry();
  void expire();
  // Handles an exception that left a handler for lack of memory.
  void report(const std::exception& error) noexcept;
  // Logs at most one warning a second and drops the others.
  void warn_limited(const std::string& about);

  const StoreServerOptions options_;
  std::shared_ptr<EventLoop> loop_;
  Endpoint endpoint_;
  StoreAuthentication authentication_;
  const StoreSecurity::Kind kind_;  // of authentication_, for every thread
  const std::string secret_;
  Fd listening_;  // not valid: adopted sockets only
  EventLoop::Token accepting_ = 0;
  EventLoop::Token accept_pause_ = 0;
  Fd reserve_;  // released briefly to refuse a connection when no descriptor is left
  EventLoop::Token expiry_ = 0;
  std::optional<Clock::time_point> armed_for_;
  StoreAdmission admission_;
  StoreState state_;
  std::array<char, 65536> chunk_ = {};
  StoreBacklog backlog_;  // of all sessions
  Headroom headroom_;
  // Owned together with the loop's callbacks.
  std::map<SessionId, std::shared_ptr<StoreSession>> sessions_;
  SessionId next_session_;
  std::deque<StoreAnswers> outbox_;
  bool is_delivering_ = false;
  Clock::time_point next_warning_ = {};
  std::uint64_t accepted_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t requests_ = 0;
  bool is_stopping_ = false;
};

}  // namespace memspan
