// SPDX-License-Identifier: Apache-2.0
#include "store/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <future>
#include <new>

#include "core/log.h"
#include "core/random.h"
#include "net/tcp.h"
#include "store/authentication.h"
#include "store/headroom.h"
#include "store/server_session.h"
#include "store/state.h"

namespace memspan::inline store {
namespace {

constexpr Duration kBetweenWarnings = std::chrono::seconds(1);
// Pause of the listener when the process has no descriptor for a new connection.
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);
constexpr int kAcceptBatch = 16;

// Also if an exception ends the delivery.
struct EndDelivery {
  void operator()(bool* is_delivering) const { *is_delivering = false; }
};

// Members know each other by session numbers, even after they lost the store (ReconnectingStore).
// So the next store at the same address must use other numbers.
SessionId random_first_session() {
  constexpr SessionId kMost = SessionId{1} << 30;
  return random_number() % kMost + 1;
}

class RunningServer final : public StoreServer, public StoreSession::Owner {
 public:
  RunningServer(StoreAuthentication authentication, StoreServerOptions options)
      : options_(std::move(options)),
        authentication_(std::move(authentication)),
        secret_(authentication_.secret()),
        admission_(options_.admission),
        state_(options_.quota, options_.sizes) {}

  Status start(std::optional<TcpListener> listener) {
    if (authentication_.tls() != nullptr)
      for (const std::string& warning : authentication_.tls()->warnings())
        log_line(LogLevel::kWarn, "the store: " + warning);
    MEMSPAN_PASS_ASSIGN(
        loop_, EventLoop::start("a store", [this](const std::exception& error) { report(error); }));
    if (!listener) return Status::ok();
    endpoint_ = listener->endpoint;
    reserve_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    listening_ = std::move(listener->socket);
    MEMSPAN_TRY_ASSIGN(
        accepting_,
        loop_->watch(listening_.get(), EPOLLIN, [this](std::uint32_t) { accept_some(); }),
        "accepting connections");
    return Status::ok();
  }

  // A child of fork() leaves the connections to its parent.
  ~RunningServer() override {
    if (loop_ != nullptr && loop_->stop()) stop();
  }

  Status adopt(Fd socket) override {
    MEMSPAN_TRY_ASSIGN(auto channel, adopt_channel(std::move(socket)), "adopting a connection");
    auto stream = std::make_shared<std::unique_ptr<ByteChannel>>(std::move(channel));
    loop_->call_soon([this, stream] {
      if (!is_stopping_) add(next_session_++, std::move(*stream));
    });
    return Status::ok();
  }

  const Endpoint& endpoint() const override { return endpoint_; }
  const std::string& secret() const override { return secret_; }
  Status reload(const StoreSecurity& security) override {
    if (security.kind != authentication_.kind())
      return {Code::kInvalidArgument, "a store that runs keeps its kind of protection"};
    if (security.kind != StoreSecurity::Kind::kCertificates) return Status::ok();
    MEMSPAN_TRY_ASSIGN(
        std::shared_ptr<const TlsContext> tls,
        TlsContext::from_certificates(TlsContext::Side::kServer, security.certificates),
        "reading the certificates again");
    MEMSPAN_TRY(authentication_.check_own(*tls), "reading the certificates again");
    // The loop may be busy, and the new certificates must apply to connections after the return.
    auto promise = std::make_shared<std::promise<void>>();
    const std::future<void> done = promise->get_future();
    loop_->call_soon([this, tls = std::move(tls), promise = std::move(promise)] {
      trust(tls);
      promise->set_value();
    });
    done.wait();  // also returns if the callback throws
    return Status::ok();
  }

  Result<StoreStatistics> statistics(Duration patience) override {
    // Owners: this call and the handler, which may run after the patience is over.
    auto promise = std::make_shared<std::promise<StoreStatistics>>();
    std::future<StoreStatistics> counted = promise->get_future();
    loop_->call_soon([this, promise] { promise->set_value(count()); });
    if (counted.wait_for(patience) == std::future_status::ready) return counted.get();
    return Status(Code::kTimeout,
                  fmt::format("the store's thread was busy for {} s", to_seconds(patience)));
  }

 private:
  // All that follows runs in the loop's thread.
  void stop() noexcept {
    is_stopping_ = true;
    authentication_.end();
    loop_->cancel(accepting_);
    loop_->cancel(accept_pause_);
    // As in StoreSession::close().
    if (listening_.is_valid()) ::shutdown(listening_.get(), SHUT_RDWR);
    listening_.reset();
    loop_->cancel(expiry_);
    while (!sessions_.empty()) {
      const auto [id, session] = *sessions_.begin();
      try {
        session->close({Code::kStoreLost, "the store ends"});
      } catch (const std::exception& error) {
        report(error);
      }
      sessions_.erase(id);
    }
  }

  StoreStatistics count() const {
    StoreStatistics now = counted_;
    now.members = state_.sessions();
    now.connections = sessions_.size();
    now.keys = state_.keys().size();
    now.key_bytes = state_.keys().bytes();
    now.waits = state_.keys().waits();
    now.watches = state_.keys().watches();
    now.session_bytes = state_.charged();
    now.unread_bytes = backlog_.bytes();
    return now;
  }

  void add(SessionId id, std::unique_ptr<ByteChannel> stream) {
    auto session = std::make_shared<StoreSession>(
        *this, id, std::move(stream), StoreSession::Shared{*loop_, chunk_, backlog_, headroom_},
        options_.patience);
    sessions_.emplace(id, session);
    session->start();
  }

  void end(SessionId id, const Status& why) {
    auto found = sessions_.find(id);
    if (found == sessions_.end()) return;
    const auto session = found->second;  // closed() takes it out of the map
    session->close(why);
  }

  void trust(std::shared_ptr<const TlsContext> tls) {
    authentication_.trust(std::move(tls), next_session_);
    std::map<SessionId, Status> refused;
    for (const auto& [id, session] : sessions_)
      if (session->is_serving())
        if (Status status = authentication_.tls()->accepts(session->stream()); !status.is_ok())
          refused.emplace(id, status.annotate("its certificate is not good any more"));
    for (const auto& [id, why] : refused) end(id, why);
  }

  // Takes at most kAcceptBatch connections off the queue, so that existing ones get their turn; the
  // loop reads from them later.
  void accept_some() {
    for (int i = 0; i < kAcceptBatch; ++i) {
      Fd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket.is_valid()) {
        try {
          accept(std::move(socket));
        } catch (const std::exception&) {
          headroom_.free();
          warn_limited("there is no memory left for another connection");
        }
        continue;
      }
      const int error = errno;
      if (error == EAGAIN || error == EWOULDBLOCK) return;
      if (error == EMFILE || error == ENFILE) accept_and_close();
      if (error == EINTR || error == ECONNABORTED) continue;
      loop_->change(accepting_, 0);
      accept_pause_ = loop_->call_at(Clock::now() + kAcceptPause,
                                     [this] { loop_->change(accepting_, EPOLLIN); });
      return;
    }
  }

  // No descriptor is left: so the peer does not wait.
  void accept_and_close() {
    reserve_.reset();
    Fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
    reserve_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    warn_limited("there are no descriptors left for another connection");
  }

  void accept(Fd socket) {
    const SessionId id = next_session_++;
    ++counted_.accepted;
    if (auto replaced = admission_.accept(id, peer_address(socket.get()), Clock::now())) {
      warn_limited("there are too many connections that have not authenticated");
      ++counted_.refused;
      if (*replaced == id) return;
      end(*replaced,
          {Code::kUnavailable, "newer connections took its place before it authenticated"});
    }
    tune_connection(socket.get());
    auto stream = authentication_.open(std::move(socket));
    if (stream.is_ok()) return add(id, std::move(stream).value());
    ++counted_.refused;
    admission_.release(id);
  }

  // StoreSession::Owner.
  StoreWelcome greet(SessionId from, const StoreHello& hello, const ByteChannel& stream) override {
    StoreState::Member member{.name = hello.member};
    if (hello.silence_ms != 0) member.silence = std::chrono::milliseconds(hello.silence_ms);
    if (Status status = authentication_.check(from, hello, stream, member); !status.is_ok())
      return {.code = status.code(), .message = status.message(), .session = from};
    admission_.release(from);
    state_.connect(from, std::move(member), Clock::now());
    arm_expiry();
    return {.session = from};
  }

  void spoke(SessionId from) override {
    admission_.note_activity(from);
    state_.hear(from, Clock::now());
  }

  void serve(SessionId from, StoreRequest request) override {
    ++counted_.requests;
    if (!headroom_.free_for(state_.memory_for(request))) throw std::bad_alloc();
    deliver(state_.apply(from, std::move(request), Clock::now()));
    headroom_.hold();
  }

  void closed(SessionId id, const Status& why) override {
    admission_.release(id);
    sessions_.erase(id);
    headroom_.free();
    try {
      if (why.code() == Code::kAuth) ++counted_.refused;
      if (why.code() == Code::kAuth) warn_limited("a connection was refused: " + why.message());
      if (why.code() == Code::kOutOfMemory)
        warn_limited("a member's session was ended: " + why.message());
      if (!is_stopping_) deliver(state_.disconnect(id));
    } catch (const std::exception& error) {
      // Even the headroom was not enough: other members do not learn of this end.
      report(error);
    }
    headroom_.hold();
  }

  // A session that breaks during a send causes more answers. They wait in the outbox, or this would
  // recurse once per session.
  void deliver(StoreAnswers answers) {
    outbox_.push_back(std::move(answers));
    if (is_delivering_) return;
    is_delivering_ = true;
    const std::unique_ptr<bool, EndDelivery> delivering(&is_delivering_);
    while (!outbox_.empty()) {
      const StoreAnswers next = std::move(outbox_.front());
      outbox_.pop_front();
      for (const StoreOutgoing& out : next) {
        auto found = sessions_.find(out.to);
        if (found == sessions_.end()) continue;
        const auto session = found->second;  // it may close and be erased while it sends
        session->send(out.answer);
      }
      if (backlog_.bytes() > options_.quota.queued) drop_slowest();
    }
    arm_expiry();
  }

  // Drops one at a time: the others may read theirs in the meantime.
  void drop_slowest() {
    const auto slowest = std::max_element(sessions_.begin(), sessions_.end(),
                                          [](const auto& one, const auto& other) {
                                            return one.second->queued() < other.second->queued();
                                          });
    if (slowest == sessions_.end()) return;
    const auto session = slowest->second;
    session->dismiss(
        {Code::kOutOfMemory,
         fmt::format("all members together left {} bytes of answers and events unread, "
                     "at most {} are kept, and it left the most, {}",
                     backlog_.bytes(), options_.quota.queued, session->queued())});
  }

  // An early timer is harmless, because it arms the next one.
  void arm_expiry() {
    const auto next = state_.next_deadline();
    if (!next || is_stopping_ || (armed_for_ && *armed_for_ <= *next)) return;
    loop_->cancel(expiry_);
    expiry_ = loop_->call_at(*next, [this] { expire(); });
    armed_for_ = next;  // last: without memory nothing is armed
  }

  void expire() {
    armed_for_.reset();
    headroom_.free();
    StoreState::Expired expired = state_.expire(Clock::now());
    for (SessionId id : expired.silent) end(id, {Code::kPeerLost, "it was silent"});
    deliver(std::move(expired.answers));
    headroom_.hold();
  }

  // Handles an exception that left a handler for lack of memory.
  void report(const std::exception& error) noexcept {
    headroom_.free();
    try {
      warn_limited(fmt::format("an event was not handled: {}", error.what()));
    } catch (const std::exception&) {
      // There is no memory for the line either.
    }
  }

  // Logs at most one warning a second and drops the others.
  void warn_limited(const std::string& about) {
    const auto now = Clock::now();
    if (now < next_warning_) return;
    next_warning_ = now + kBetweenWarnings;
    log_line(LogLevel::kWarn, fmt::format("the store at {}: {}", endpoint_.to_string(), about));
  }

  const StoreServerOptions options_;
  std::shared_ptr<EventLoop> loop_;
  Endpoint endpoint_;
  StoreAuthentication authentication_;
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
  SessionId next_session_ = random_first_session();
  std::deque<StoreAnswers> outbox_;
  bool is_delivering_ = false;
  Clock::time_point next_warning_ = {};
  StoreStatistics counted_;  // what happened; count() adds what exists
  bool is_stopping_ = false;
};

Result<std::unique_ptr<StoreServer>> start_server(std::optional<TcpListener> listener,
                                                  StoreAuthentication authentication,
                                                  StoreServerOptions options) {
  auto made = std::make_unique<RunningServer>(std::move(authentication), std::move(options));
  MEMSPAN_TRY(made->start(std::move(listener)), "starting the store");
  return std::unique_ptr<StoreServer>(std::move(made));
}

}  // namespace

Result<std::unique_ptr<StoreServer>> StoreServer::listen(const Endpoint& endpoint,
                                                         StoreServerOptions options) {
  MEMSPAN_TRY_ASSIGN(TcpListener listener, listen_tcp(endpoint), "starting the store");
  MEMSPAN_TRY_ASSIGN(StoreAuthentication authentication,
                     StoreAuthentication::make(options.security, listener.endpoint, options.job),
                     "starting the store");
  return start_server(std::move(listener), std::move(authentication), std::move(options));
}

Result<std::unique_ptr<StoreServer>> StoreServer::without_listener(StoreServerOptions options) {
  StoreAuthentication none = StoreAuthentication::none(options.job);
  return start_server(std::nullopt, std::move(none), std::move(options));
}

}  // namespace memspan::inline store
