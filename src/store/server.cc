// SPDX-License-Identifier: Apache-2.0
#include "store/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <map>
#include <optional>
#include <system_error>
#include <thread>

#include "store/asio.h"
#include "store/session.h"
#include "store/state.h"
#include "store/tcp.h"

namespace memspan {
namespace {

// A member says hello right after connecting; seconds allow for a host that is overloaded.
constexpr Duration kHelloPatience = std::chrono::seconds(5);
// How long to leave the listener alone when the process has no descriptor for a new connection.
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);
// Accepted in one go, before the connections that exist get their turn again.
constexpr int kAcceptBatch = 16;

// Signals are for the program's own threads; a thread made meanwhile inherits the blocked mask.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

// Everything below start() and adopt() happens in thread_. The thread ends when nothing is left
// to wait for, which stop() brings about.
class StoreServer::Loop final : public StoreSession::Owner {
 public:
  explicit Loop(std::optional<TcpListener> listener) : work_(context_.get_executor()) {
    if (listener) {
      endpoint_ = listener->endpoint;
      listener_.assign(listener->socket.get());
      static_cast<void>(listener->socket.release());
      asio::post(context_, [this] { await_connections(); });
    }
    SignalsBlocked blocked;
    thread_ = std::thread([this] { context_.run(); });
  }
  ~Loop() {
    asio::post(context_, [this] { stop(); });
    thread_.join();
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  const Endpoint& endpoint() const { return endpoint_; }
  Status adopt(Fd socket);

 private:
  void stop();
  void await_connections();
  void accept_some();
  void pause_accepting();
  void add(StoreSession::Socket socket);
  void serve(StoreSession::Id from, StoreRequest request) override;
  void closed(StoreSession::Id id) override;
  void deliver(const StoreState::Answers& answers);
  void arm_expiry();

  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  Endpoint endpoint_;
  asio::posix::stream_descriptor listener_{context_};
  asio::steady_timer accept_pause_{context_};
  asio::steady_timer expiry_{context_};
  std::optional<Clock::time_point> armed_for_;
  StoreState state_;
  // Owned together with Asio's pending handlers.
  std::map<StoreSession::Id, std::shared_ptr<StoreSession>> sessions_;
  StoreSession::Id next_session_ = 1;
  bool is_stopping_ = false;
  std::thread thread_;
};

Status StoreServer::Loop::adopt(Fd socket) {
  int type = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
    return {Code::kInvalidArgument, "the descriptor is not a stream socket"};
  sockaddr_storage local = {};
  length = sizeof local;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &length) != 0)
    return Status::from_errno("getsockname");
  StoreSession::Socket own(context_);
  asio::error_code error;
  own.assign({local.ss_family, 0}, socket.get(), error);
  if (error) return Status::from_errno("watching the socket", error.value());
  static_cast<void>(socket.release());
  send_small_messages_at_once(own.native_handle());
  asio::post(context_, [this, own = std::move(own)]() mutable { add(std::move(own)); });
  return Status::ok();
}

void StoreServer::Loop::stop() {
  is_stopping_ = true;
  asio::error_code ignored;
  listener_.close(ignored);
  accept_pause_.cancel();
  while (!sessions_.empty()) {
    auto session = sessions_.begin()->second;  // closed() takes it out of the map
    session->close();
  }
  expiry_.cancel();
  work_.reset();
}

void StoreServer::Loop::await_connections() {
  listener_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [this](const asio::error_code& error) {
                         if (!error && !is_stopping_) accept_some();
                       });
}

// Only takes connections off the queue; what they say is read when the loop comes to them.
void StoreServer::Loop::accept_some() {
  for (int i = 0; i < kAcceptBatch; ++i) {
    Fd socket(::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.is_valid()) {
      static_cast<void>(adopt(std::move(socket)));  // one that cannot be watched is closed
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    if (errno != EINTR && errno != ECONNABORTED) return pause_accepting();
  }
  await_connections();
}

void StoreServer::Loop::pause_accepting() {
  accept_pause_.expires_after(kAcceptPause);
  accept_pause_.async_wait([this](const asio::error_code& error) {
    if (!error && !is_stopping_) await_connections();
  });
}

void StoreServer::Loop::add(StoreSession::Socket socket) {
  if (is_stopping_) return;
  const StoreSession::Id id = next_session_++;
  auto session = std::make_shared<StoreSession>(*this, id, std::move(socket));
  sessions_.emplace(id, session);
  session->start(kHelloPatience);
}

void StoreServer::Loop::serve(StoreSession::Id from, StoreRequest request) {
  deliver(state_.apply(from, std::move(request), Clock::now()));
}

void StoreServer::Loop::closed(StoreSession::Id id) {
  state_.disconnect(id);
  sessions_.erase(id);
}

void StoreServer::Loop::deliver(const StoreState::Answers& answers) {
  for (const auto& [to, answer] : answers)
    if (auto session = sessions_.find(to); session != sessions_.end())
      session->second->send(answer);
  arm_expiry();
}

// An alarm that is too early does no harm, it arms the next one.
void StoreServer::Loop::arm_expiry() {
  const auto next = state_.next_deadline();
  if (!next || (armed_for_ && *armed_for_ <= *next)) return;
  armed_for_ = next;
  expiry_.expires_at(*next);
  expiry_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    armed_for_.reset();
    deliver(state_.expire(Clock::now()));
  });
}

namespace {

// Asio and std::thread report a lack of descriptors or threads by throwing when they are made.
template <typename Make>
auto without_exceptions(Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::system_error& error) {
    return Status(Code::kSystem, fmt::format("starting the store: {}", error.what()));
  }
}

}  // namespace

StoreServer::StoreServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
StoreServer::~StoreServer() = default;

Result<std::unique_ptr<StoreServer>> StoreServer::listen(const Endpoint& endpoint) {
  MEMSPAN_TRY_ASSIGN(TcpListener listener, listen_tcp(endpoint), "starting the store");
  return without_exceptions([&]() -> Result<std::unique_ptr<StoreServer>> {
    auto loop = std::make_unique<Loop>(std::move(listener));
    return std::unique_ptr<StoreServer>(new StoreServer(std::move(loop)));
  });
}

Result<std::unique_ptr<StoreServer>> StoreServer::without_listener() {
  return without_exceptions([]() -> Result<std::unique_ptr<StoreServer>> {
    auto loop = std::make_unique<Loop>(std::nullopt);
    return std::unique_ptr<StoreServer>(new StoreServer(std::move(loop)));
  });
}

Status StoreServer::adopt(Fd socket) {
  return loop_->adopt(std::move(socket)).annotate("adopting a connection");
}

const Endpoint& StoreServer::endpoint() const {
  return loop_->endpoint();
}

}  // namespace memspan
