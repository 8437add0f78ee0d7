// SPDX-License-Identifier: Apache-2.0
#include "store/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "core/log.h"
#include "core/random.h"
#include "store/asio.h"
#include "store/headroom.h"
#include "store/host_secret.h"
#include "store/session.h"
#include "store/state.h"
#include "store/tcp.h"
#include "store/tls.h"

namespace memspan {
namespace {

// How long to leave the listener alone when the process has no descriptor for a new connection.
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);
// Accepted in one go, before the connections that exist get their turn again.
constexpr int kAcceptBatch = 16;
constexpr Duration kBetweenComplaints = std::chrono::seconds(1);

// Says that somebody delivers, for as long as it lives.
class Delivering {
 public:
  explicit Delivering(bool& is_on) : is_on_(is_on) { is_on_ = true; }
  ~Delivering() { is_on_ = false; }
  Delivering(const Delivering&) = delete;
  Delivering& operator=(const Delivering&) = delete;

 private:
  bool& is_on_;
};

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

// What a server was made with, once the files are read. Move-only.
struct Protection {
  StoreSecurity::Kind kind = StoreSecurity::Kind::kPlain;
  std::optional<HostSecret> published = {};  // kHostSecret
  std::string secret = {};
  std::shared_ptr<const TlsContext> tls = {};  // null: plain; shared with nobody
};

Result<Protection> protect(const StoreSecurity& security, const Endpoint& endpoint) {
  using Kind = StoreSecurity::Kind;
  Protection made{.kind = security.kind, .secret = security.secret};
  if (security.kind == Kind::kPlain) return made;
  if (security.kind == Kind::kCertificates) {
    MEMSPAN_TRY_ASSIGN(
        made.tls, TlsContext::from_certificates(TlsContext::Side::kServer, security.certificates),
        "setting up TLS");
    return made;
  }
  if (security.kind == Kind::kHostSecret) {
    MEMSPAN_TRY_ASSIGN(HostSecret published, HostSecret::publish(endpoint), "setting up TLS");
    made.secret = published.secret();
    made.published.emplace(std::move(published));
  }
  MEMSPAN_TRY_ASSIGN(made.tls, TlsContext::from_secret(TlsContext::Side::kServer, made.secret),
                     "setting up TLS");
  return made;
}

// What it was told, or what its own certificate names.
std::string job_of(const StoreServerOptions& options, const TlsContext* tls) {
  if (!options.job.empty() || tls == nullptr || !tls->own_identity()) return options.job;
  return tls->own_identity()->job;
}

std::uint64_t random_epoch() {
  return std::stoull(random_hex(8), nullptr, 16) | 1;  // 0 means any
}

}  // namespace

// Everything but the public functions happens in thread_. The thread ends when nothing is left to
// wait for, which stop() brings about.
class StoreServer::Loop final : public StoreSession::Owner {
 public:
  Loop(std::optional<TcpListener> listener, Protection protection, StoreServerOptions options);
  ~Loop() {
    asio::post(context_, [this] { stop(); });
    thread_.join();
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  const Endpoint& endpoint() const { return endpoint_; }
  const std::string& secret() const { return secret_; }
  Status adopt(Fd socket);
  Status reload(const StoreSecurity& security);

 private:
  void stop();
  void await_connections();
  void accept_some();
  void accept_and_close();
  void pause_accepting();
  void let_to_the_door(Fd socket);
  void add(SessionId id, std::unique_ptr<StoreStream> stream);
  void end(SessionId id, const Status& why);
  void trust(std::shared_ptr<const TlsContext> tls);
  StoreWelcome greet(SessionId from, const StoreHello& hello, const StoreStream& stream) override;
  Status admit(SessionId from, const StoreHello& hello, const StoreStream& stream,
               StoreState::Member& member) const;
  Status bind(const StoreHello& hello, const StreamIdentity& named,
              StoreState::Member& member) const;
  void spoke(SessionId from) override;
  void serve(SessionId from, StoreRequest request) override;
  void closed(SessionId id, const Status& why) override;
  void free_headroom() override { headroom_.free(); }
  bool has_memory(std::size_t bytes) const override { return Headroom::is_there(bytes); }
  void deliver(StoreAnswers answers);
  void drop_slowest();
  void run();
  void arm_expiry();
  void expire();
  void complain(const std::string& about);

  const StoreServerOptions options_;
  const std::string job_;  // that it serves; empty: any
  const std::uint64_t epoch_ = random_epoch();
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  Endpoint endpoint_;
  const StoreSecurity::Kind kind_;
  const std::string secret_;
  std::optional<HostSecret> published_;
  std::shared_ptr<const TlsContext> tls_;  // null: plain; shared with who reloads it
  asio::posix::stream_descriptor listener_{context_};
  Fd reserve_;  // given up for a moment to be able to refuse when there are no descriptors left
  asio::steady_timer accept_pause_{context_};
  asio::steady_timer expiry_{context_};
  std::optional<Clock::time_point> armed_for_;
  StoreDoorkeeper door_;
  StoreState state_;
  std::array<char, 65536> chunk_ = {};
  StoreBacklog backlog_;  // of all sessions
  Headroom headroom_;
  // Owned together with Asio's pending handlers.
  std::map<SessionId, std::shared_ptr<StoreSession>> sessions_;
  SessionId next_session_ = 1;
  SessionId trusted_since_ = 0;  // the first session that began with this tls_
  std::deque<StoreAnswers> outbox_;
  bool is_delivering_ = false;
  Clock::time_point next_complaint_ = {};
  bool is_stopping_ = false;
  std::thread thread_;
};

StoreServer::Loop::Loop(std::optional<TcpListener> listener, Protection protection,
                        StoreServerOptions options)
    : options_(std::move(options)),
      job_(job_of(options_, protection.tls.get())),
      work_(context_.get_executor()),
      kind_(protection.kind),
      secret_(std::move(protection.secret)),
      published_(std::move(protection.published)),
      tls_(std::move(protection.tls)),
      reserve_(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
      door_(options_.door),
      state_(options_.quota, options_.sizes) {
  if (listener) {
    endpoint_ = listener->endpoint;
    listener_.assign(listener->socket.get());
    static_cast<void>(listener->socket.release());
    asio::post(context_, [this] { await_connections(); });
  }
  if (tls_ != nullptr)
    for (const std::string& warning : tls_->warnings())
      log_line(LogLevel::kWarn, "the store: " + warning);
  SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

// What a handler throws for lack of memory, and nothing nearer to it caught, ends that handler
// only.
void StoreServer::Loop::run() {
  for (;;) {
    try {
      context_.run();
      return;
    } catch (const std::exception&) {
      headroom_.free();
    }
  }
}

Status StoreServer::Loop::adopt(Fd socket) {
  int type = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
    return {Code::kInvalidArgument, "the descriptor is not a stream socket"};
  tune_connection(socket.get());
  asio::post(context_, [this, stream = make_plain_stream(std::move(socket))]() mutable {
    if (!is_stopping_) add(next_session_++, std::move(stream));
  });
  return Status::ok();
}

Status StoreServer::Loop::reload(const StoreSecurity& security) {
  if (security.kind != kind_)
    return {Code::kInvalidArgument, "a store that runs keeps its kind of protection"};
  if (kind_ != StoreSecurity::Kind::kCertificates) return Status::ok();
  MEMSPAN_TRY_ASSIGN(
      std::shared_ptr<const TlsContext> tls,
      TlsContext::from_certificates(TlsContext::Side::kServer, security.certificates),
      "reading the certificates again");
  asio::post(context_, [this, tls = std::move(tls)]() mutable { trust(std::move(tls)); });
  return Status::ok();
}

void StoreServer::Loop::trust(std::shared_ptr<const TlsContext> tls) {
  tls_ = std::move(tls);
  trusted_since_ = next_session_;
  std::map<SessionId, Status> refused;
  for (const auto& [id, session] : sessions_)
    if (session->is_serving())
      if (Status status = tls_->accepts(session->stream()); !status.is_ok())
        refused.emplace(id, status.annotate("its certificate is not good any more"));
  for (const auto& [id, why] : refused) end(id, why);
}

void StoreServer::Loop::stop() {
  is_stopping_ = true;
  published_.reset();  // before the address is free for another store
  asio::error_code ignored;
  if (listener_.is_open())
    ::shutdown(listener_.native_handle(), SHUT_RDWR);  // as in StoreSession::close()
  listener_.close(ignored);
  accept_pause_.cancel();
  while (!sessions_.empty()) end(sessions_.begin()->first, {Code::kStoreLost, "the store ends"});
  expiry_.cancel();
  work_.reset();
}

void StoreServer::Loop::end(SessionId id, const Status& why) {
  auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const auto session = found->second;  // closed() takes it out of the map
  session->close(why);
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
      try {
        let_to_the_door(std::move(socket));
      } catch (const std::exception&) {
        headroom_.free();
        complain("there is no memory left for another connection");
      }
      continue;
    }
    const int error = errno;
    if (error == EAGAIN || error == EWOULDBLOCK) break;
    if (error == EMFILE || error == ENFILE) accept_and_close();
    if (error != EINTR && error != ECONNABORTED) return pause_accepting();
  }
  await_connections();
}

// Without a descriptor left a connection could not even be refused, and its owner would wait.
void StoreServer::Loop::accept_and_close() {
  reserve_.reset();
  Fd(::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
  reserve_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  complain("there are no descriptors left for another connection");
}

void StoreServer::Loop::pause_accepting() {
  accept_pause_.expires_after(kAcceptPause);
  accept_pause_.async_wait([this](const asio::error_code& error) {
    if (!error && !is_stopping_) await_connections();
  });
}

void StoreServer::Loop::let_to_the_door(Fd socket) {
  const SessionId id = next_session_++;
  if (auto goes = door_.arrive(id, peer_address(socket.get()), Clock::now())) {
    complain("there are too many connections that have not said who they are");
    if (*goes == id) return;
    end(*goes, {Code::kUnavailable, "others wait at the door"});
  }
  tune_connection(socket.get());
  if (tls_ == nullptr) return add(id, make_plain_stream(std::move(socket)));
  auto stream = tls_->open(std::move(socket), {});
  if (stream.is_ok()) return add(id, std::move(stream).value());
  door_.leave(id);
}

void StoreServer::Loop::add(SessionId id, std::unique_ptr<StoreStream> stream) {
  auto session = std::make_shared<StoreSession>(*this, id, std::move(stream),
                                                StoreSession::Shared{context_, chunk_, backlog_},
                                                options_.patience);
  sessions_.emplace(id, session);
  session->start();
}

StoreWelcome StoreServer::Loop::greet(SessionId from, const StoreHello& hello,
                                      const StoreStream& stream) {
  StoreWelcome welcome{.epoch = epoch_, .session = from};
  StoreState::Member member{.name = hello.member};
  if (hello.silence_ms != 0) member.silence = std::chrono::milliseconds(hello.silence_ms);
  if (Status status = admit(from, hello, stream, member); !status.is_ok()) {
    welcome.code = status.code();
    welcome.message = status.message();
    return welcome;
  }
  door_.leave(from);
  state_.connect(from, std::move(member), Clock::now());
  arm_expiry();
  return welcome;
}

Status StoreServer::Loop::admit(SessionId from, const StoreHello& hello, const StoreStream& stream,
                                StoreState::Member& member) const {
  // Its handshake may have gone by what was trusted before.
  if (tls_ != nullptr && from < trusted_since_)
    if (Status status = tls_->accepts(stream); !status.is_ok())
      return {Code::kAuth, "the certificate is not good any more: " + status.message()};
  if (!options_.job.empty() && !hello.job.empty() && hello.job != options_.job)
    return {Code::kInvalidArgument,
            fmt::format("this store serves the job \"{}\", not \"{}\"", options_.job, hello.job)};
  if (hello.epoch != 0 && hello.epoch != epoch_)
    return {Code::kStale, "this is another store than before"};
  auto named = stream.identity();
  if (!named.is_ok()) return named.status();
  return *named ? bind(hello, **named, member) : Status::ok();
}

// A certificate that names a member says who this is. Without a job that the store knows, the scope
// of a rank tells it later.
Status StoreServer::Loop::bind(const StoreHello& hello, const StreamIdentity& named,
                               StoreState::Member& member) const {
  if (hello.rank >= 0 && named.rank != hello.rank)
    return {Code::kAuth, fmt::format("the certificate names rank {}, the member claims {}",
                                     named.rank, hello.rank)};
  const std::string& job = job_.empty() ? hello.job : job_;
  if (!job.empty() && named.job != job)
    return {Code::kAuth,
            fmt::format("the certificate names the job \"{}\", not \"{}\"", named.job, job)};
  member.rank = named.rank;
  if (job_.empty()) member.job = named.job;
  return Status::ok();
}

void StoreServer::Loop::spoke(SessionId from) {
  door_.speak(from);
  state_.hear(from, Clock::now());
}

void StoreServer::Loop::serve(SessionId from, StoreRequest request) {
  if (!headroom_.free_for(state_.memory_for(request))) throw std::bad_alloc();
  deliver(state_.apply(from, std::move(request), Clock::now()));
  headroom_.hold();
}

void StoreServer::Loop::closed(SessionId id, const Status& why) {
  door_.leave(id);
  sessions_.erase(id);
  headroom_.free();
  try {
    if (why.code() == Code::kAuth) complain("a connection was refused: " + why.message());
    if (why.code() == Code::kOutOfMemory)
      complain("a member's session was ended: " + why.message());
    if (!is_stopping_) deliver(state_.disconnect(id, why.message()));
  } catch (const std::exception&) {
    // Not even the headroom was enough: those who would hear of this end hear nothing.
  }
  headroom_.hold();
}

// A session that breaks while it is sent to brings more answers: they wait in the outbox, or
// this would call itself as often as there are sessions.
void StoreServer::Loop::deliver(StoreAnswers answers) {
  outbox_.push_back(std::move(answers));
  if (is_delivering_) return;
  const Delivering delivering(is_delivering_);
  while (!outbox_.empty()) {
    const StoreAnswers next = std::move(outbox_.front());
    outbox_.pop_front();
    for (const StoreOutgoing& out : next) {
      auto found = sessions_.find(out.to);
      if (found == sessions_.end()) continue;
      const auto session = found->second;  // it may close, and go, while it sends
      session->send(out.answer);
    }
    if (backlog_.bytes() > options_.quota.queued) drop_slowest();
  }
  arm_expiry();
}

// One at a time: the others may read theirs meanwhile.
void StoreServer::Loop::drop_slowest() {
  const auto slowest =
      std::max_element(sessions_.begin(), sessions_.end(), [](const auto& one, const auto& other) {
        return one.second->queued() < other.second->queued();
      });
  if (slowest == sessions_.end()) return;
  const auto session = slowest->second;
  session->dismiss({Code::kOutOfMemory,
                    fmt::format("all members together left {} bytes of answers and events unread, "
                                "at most {} are kept, and it left the most, {}",
                                backlog_.bytes(), options_.quota.queued, session->queued())});
}

// An alarm that is too early does no harm, it arms the next one.
void StoreServer::Loop::arm_expiry() {
  const auto next = state_.next_deadline();
  if (!next || is_stopping_ || (armed_for_ && *armed_for_ <= *next)) return;
  expiry_.expires_at(*next);
  expiry_.async_wait([this](const asio::error_code& error) {
    if (!error) expire();
  });
  armed_for_ = next;  // last: without memory nothing is armed
}

void StoreServer::Loop::expire() {
  armed_for_.reset();
  headroom_.free();
  StoreState::Expired expired = state_.expire(Clock::now());
  for (SessionId id : expired.silent) end(id, {Code::kPeerLost, "it was silent"});
  deliver(std::move(expired.answers));
  headroom_.hold();
}

void StoreServer::Loop::complain(const std::string& about) {
  const auto now = Clock::now();
  if (now < next_complaint_) return;
  next_complaint_ = now + kBetweenComplaints;
  log_line(LogLevel::kWarn, fmt::format("the store at {}: {}", endpoint_.to_string(), about));
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

Result<std::unique_ptr<StoreServer>> StoreServer::listen(const Endpoint& endpoint,
                                                         StoreServerOptions options) {
  MEMSPAN_TRY_ASSIGN(TcpListener listener, listen_tcp(endpoint), "starting the store");
  MEMSPAN_TRY_ASSIGN(Protection protection, protect(options.security, listener.endpoint),
                     "starting the store");
  return without_exceptions([&]() -> Result<std::unique_ptr<StoreServer>> {
    auto loop =
        std::make_unique<Loop>(std::move(listener), std::move(protection), std::move(options));
    return std::unique_ptr<StoreServer>(new StoreServer(std::move(loop)));
  });
}

Result<std::unique_ptr<StoreServer>> StoreServer::without_listener(StoreServerOptions options) {
  return without_exceptions([&]() -> Result<std::unique_ptr<StoreServer>> {
    auto loop = std::make_unique<Loop>(std::nullopt, Protection{}, std::move(options));
    return std::unique_ptr<StoreServer>(new StoreServer(std::move(loop)));
  });
}

Status StoreServer::adopt(Fd socket) {
  return loop_->adopt(std::move(socket)).annotate("adopting a connection");
}

const Endpoint& StoreServer::endpoint() const {
  return loop_->endpoint();
}

const std::string& StoreServer::secret() const {
  return loop_->secret();
}

Status StoreServer::reload(const StoreSecurity& security) {
  return loop_->reload(security);
}

}  // namespace memspan
