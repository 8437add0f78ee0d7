// SPDX-License-Identifier: Apache-2.0
#include "store/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace memspan {
namespace {

// The welcome travels through the same table as the answers, under an id that no request has.
constexpr std::uint64_t kWelcomeId = 0;
// Long enough for an answer that left the store in time, short beside any time-out in use.
constexpr Duration kAnswerGrace = std::chrono::seconds(1);
constexpr std::size_t kChunkBytes = std::size_t{64} << 10;

bool is_blocking(const StoreRequest& request) {
  return request.operation == StoreOperation::kGet || request.operation == StoreOperation::kWait;
}

std::uint32_t timeout_ms(const Deadline& deadline) {
  if (deadline.is_never()) return kNoTimeout;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
  return static_cast<std::uint32_t>(std::min<std::int64_t>(ms, kNoTimeout - 1));
}

Deadline with_grace(const Deadline& deadline) {
  if (deadline.is_never()) return deadline;
  return Deadline::after(deadline.remaining() + kAnswerGrace);
}

StoreAnswer as_answer(StoreWelcome welcome) {
  return {.id = kWelcomeId, .code = welcome.code, .message = std::move(welcome.message)};
}

// read(2) and write(2) of an eventfd that is ours fail only when there is nothing to do.
void ring(int eventfd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(eventfd, &one, sizeof one);
}

void silence(int eventfd) {
  std::uint64_t count = 0;
  [[maybe_unused]] auto read = ::read(eventfd, &count, sizeof count);
}

}  // namespace

Result<std::unique_ptr<StoreClient::Connection>> StoreClient::Connection::greet(
    Fd socket, std::string where, std::string_view member, Deadline deadline) {
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_valid()) return Status::from_errno("eventfd");
  std::unique_ptr<Connection> connection(
      new Connection(std::move(socket), std::move(wake), std::move(where)));
  StoreAnswer welcome;
  const StoreHello hello{.member = std::string(member)};
  Status status = connection->exchange(kWelcomeId, encode(hello), welcome, deadline);
  if (!status.is_ok()) return status;
  if (welcome.code != Code::kOk)
    return Status(welcome.code,
                  fmt::format("the store at {}: {}", connection->where_, welcome.message));
  return connection;
}

StoreClient::Connection::Connection(Fd socket, Fd wake, std::string where)
    : socket_(std::move(socket)),
      wake_(std::move(wake)),
      where_(std::move(where)),
      next_id_(kWelcomeId + 1),
      reader_(kMaxFrameBytes),
      chunk_(kChunkBytes) {}

StoreClient::Connection::~Connection() = default;

Result<StoreAnswer> StoreClient::Connection::call(StoreRequest request, Deadline deadline) {
  if (Status status = check_request(request); !status.is_ok())
    return status.annotate(operation_name(request.operation));
  const auto what = [&] {
    return fmt::format("{} of {} at the store {}", operation_name(request.operation),
                       list_keys(request.keys), where_);
  };
  const Clock::time_point begin = Clock::now();
  request.id = next_id_.fetch_add(1, std::memory_order_relaxed);  // pairs with nothing: unique
  if (is_blocking(request)) request.timeout_ms = timeout_ms(deadline);
  StoreAnswer answer;
  const Deadline bound = is_blocking(request) ? with_grace(deadline) : deadline;
  Status status = exchange(request.id, encode(request), answer, bound);
  if (status.is_ok() && answer.code == Code::kOk) return answer;
  if (status.is_ok()) status = Status(answer.code, answer.message);
  if (status.code() != Code::kTimeout) return status.annotate(what());
  return status.annotate(
      fmt::format("{}: timed out after {:.3f} s", what(), to_seconds(Clock::now() - begin)));
}

Status StoreClient::Connection::exchange(std::uint64_t id, std::string frame, StoreAnswer& answer,
                                         Deadline deadline) {
  Call call;
  MutexLock lock(mutex_);
  if (!lost_.is_ok()) return lost_;
  if (deadline.has_passed()) return {Code::kTimeout, "the deadline passed before it was sent"};
  calls_.emplace(id, &call);
  send(id, std::move(frame));
  await(call, deadline);
  calls_.erase(id);
  withdraw(id);
  if (!call.is_answered && !lost_.is_ok()) return lost_;
  if (!call.is_answered) return {Code::kTimeout, fmt::format("no answer from {}", where_)};
  answer = std::move(call.answer);
  return Status::ok();
}

void StoreClient::Connection::send(std::uint64_t id, std::string frame) {
  unsent_.push_back({.id = id, .frame = std::move(frame)});
  flush();
  if (!unsent_.empty() && is_driven_) ring(wake_.get());
}

// Never blocks; what the socket does not take now is the driver's to send.
void StoreClient::Connection::flush() {
  while (!unsent_.empty() && lost_.is_ok()) {
    Outgoing& next = unsent_.front();
    const ssize_t sent = ::send(socket_.get(), next.frame.data() + next.sent,
                                next.frame.size() - next.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) return lose(Status::from_errno("sending").message());
    next.sent += static_cast<std::size_t>(sent);
    if (next.sent == next.frame.size()) unsent_.pop_front();
  }
}

// A frame of which a part is on its way must follow whole, or the stream makes no sense.
void StoreClient::Connection::withdraw(std::uint64_t id) {
  std::erase_if(unsent_, [id](const Outgoing& out) { return out.id == id && out.sent == 0; });
}

void StoreClient::Connection::await(const Call& call, const Deadline& deadline) {
  while (!call.is_answered && lost_.is_ok() && !deadline.has_passed()) {
    if (is_driven_)
      changed_.wait_until(mutex_, deadline);
    else
      drive(deadline);
  }
  if (!is_driven_) changed_.notify_all();  // somebody else must drive now
}

void StoreClient::Connection::drive(const Deadline& deadline) {
  is_driven_ = true;
  const bool has_unsent = !unsent_.empty();
  mutex_.unlock();
  Turn turn = take_turn(has_unsent, deadline);
  mutex_.lock();
  is_driven_ = false;
  for (StoreAnswer& answer : turn.answers) {
    auto call = calls_.find(answer.id);
    if (call == calls_.end()) continue;  // its caller has given up
    call->second->answer = std::move(answer);
    call->second->is_answered = true;
  }
  if (!turn.answers.empty()) changed_.notify_all();
  if (!turn.lost_because.empty())
    lose(turn.lost_because);
  else
    flush();
}

void StoreClient::Connection::lose(std::string_view because) {
  if (lost_.is_ok()) lost_ = {Code::kStoreLost, fmt::format("lost {}: {}", where_, because)};
  unsent_.clear();
  ::shutdown(socket_.get(), SHUT_RDWR);  // ends the driver's poll, whoever found the loss
  changed_.notify_all();
}

StoreClient::Connection::Turn StoreClient::Connection::take_turn(bool has_unsent,
                                                                 const Deadline& deadline) {
  Turn turn;
  const short events = has_unsent ? POLLIN | POLLOUT : POLLIN;
  pollfd polled[] = {{.fd = socket_.get(), .events = events, .revents = 0},
                     {.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  if (::poll(polled, 2, deadline.remaining_poll_ms()) < 0) {
    if (errno != EINTR) turn.lost_because = Status::from_errno("polling").message();
    return turn;
  }
  if (polled[1].revents != 0) silence(wake_.get());
  if ((polled[0].revents & ~POLLOUT) != 0) receive(turn);
  return turn;
}

void StoreClient::Connection::receive(Turn& turn) {
  const ssize_t bytes = ::recv(socket_.get(), chunk_.data(), chunk_.size(), MSG_DONTWAIT);
  if (bytes < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) return;
  if (bytes < 0) turn.lost_because = Status::from_errno("receiving").message();
  if (bytes == 0) turn.lost_because = "it closed the connection";
  if (bytes <= 0) return;
  reader_.feed({chunk_.data(), static_cast<std::size_t>(bytes)});
  while (auto body = reader_.next()) decode(*body, turn);
  if (reader_.is_broken()) turn.lost_because = "it sent a frame that is too long or empty";
}

void StoreClient::Connection::decode(std::string_view body, Turn& turn) {
  if (!is_welcomed_) {
    auto welcome = decode_welcome(body);
    is_welcomed_ = welcome.is_ok();
    if (!welcome.is_ok()) turn.lost_because = welcome.status().message();
    if (welcome.is_ok()) turn.answers.push_back(as_answer(std::move(welcome).value()));
    return;
  }
  auto answer = decode_answer(body);
  if (!answer.is_ok()) turn.lost_because = answer.status().message();
  if (answer.is_ok()) turn.answers.push_back(std::move(answer).value());
}

}  // namespace memspan
