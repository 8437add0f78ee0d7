// SPDX-License-Identifier: Apache-2.0
// The store's event loop: one thread that serves its sessions from one StoreState.
#pragma once

#include <array>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "net/event_loop.h"
#include "net/tcp.h"
#include "store/admission.h"
#include "store/authentication.h"
#include "store/backlog.h"
#include "store/headroom.h"
#include "store/listener.h"
#include "store/server.h"
#include "store/server_session.h"
#include "store/state.h"

namespace memspan {

// All but the public functions runs in the loop's thread.
class StoreServer::Loop final : public StoreSession::Owner, public StoreListener::Owner {
 public:
  static Result<std::unique_ptr<Loop>> start(std::optional<TcpListener> listener,
                                             StoreAuthentication authentication,
                                             StoreServerOptions options);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  const Endpoint& endpoint() const { return endpoint_; }
  const std::string& secret() const { return secret_; }
  Status adopt(Fd socket);
  Status reload(const StoreSecurity& security);
  Result<StoreStatistics> statistics(Duration patience);

 private:
  Loop(StoreAuthentication authentication, StoreServerOptions options);
  void stop() noexcept;
  StoreStatistics count() const;
  void add(SessionId id, std::unique_ptr<ByteChannel> stream);
  void end(SessionId id, const Status& why);
  void trust(std::shared_ptr<const TlsContext> tls);

  // StoreListener::Owner.
  void accept(Fd socket) override;
  void out_of_memory() override;
  void out_of_descriptors() override;

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
  const std::uint64_t epoch_;
  std::shared_ptr<EventLoop> loop_;
  Endpoint endpoint_;
  StoreAuthentication authentication_;
  const StoreSecurity::Kind kind_;  // of authentication_, for every thread
  const std::string secret_;
  std::optional<StoreListener> listener_;
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
