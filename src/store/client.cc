// SPDX-License-Identifier: Apache-2.0
#include "store/client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "store/connection.h"
#include "store/tcp.h"

namespace memspan {
namespace {

// Between attempts to connect: a store that starts with us is found at once, one that comes much
// later costs its host a few attempts a second from each member.
constexpr int kFirstPauseMs = 5;
constexpr int kLongestPauseMs = 200;

void pause(int ms, const Deadline& deadline) {
  static_cast<void>(::poll(nullptr, 0, std::min(ms, std::max(deadline.remaining_poll_ms(), 0))));
}

// Nobody listens yet, or who listened has gone: another attempt may find the store.
bool may_come_later(Code code) {
  return code == Code::kUnavailable || code == Code::kStoreLost || code == Code::kTimeout;
}

}  // namespace

StoreClient::StoreClient(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
StoreClient::~StoreClient() = default;

Result<std::unique_ptr<StoreClient>> StoreClient::adopt(Fd socket, std::string_view member,
                                                        Deadline deadline) {
  int type = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
    return Status(Code::kInvalidArgument, "the descriptor is not a stream socket");
  send_small_messages_at_once(socket.get());
  MEMSPAN_TRY_ASSIGN(std::unique_ptr<Connection> connection,
                     Connection::greet(std::move(socket), "on an adopted socket", member, deadline),
                     "greeting the store");
  return std::unique_ptr<StoreClient>(new StoreClient(std::move(connection)));
}

Result<std::unique_ptr<StoreClient>> StoreClient::connect(const Endpoint& endpoint,
                                                          std::string_view member,
                                                          Deadline deadline) {
  const Clock::time_point begin = Clock::now();
  Status last(Code::kTimeout, "the deadline had passed before the first attempt");
  for (int ms = kFirstPauseMs; !deadline.has_passed(); ms = std::min(2 * ms, kLongestPauseMs)) {
    auto socket = connect_tcp(endpoint, deadline);
    last = socket.status();
    if (socket.is_ok()) {
      auto connection =
          Connection::greet(std::move(socket).value(), endpoint.to_string(), member, deadline);
      if (connection.is_ok())
        return std::unique_ptr<StoreClient>(new StoreClient(std::move(connection).value()));
      last = connection.status();
    }
    if (!may_come_later(last.code())) return last.annotate("connecting to the store");
    pause(ms, deadline);
  }
  return Status(Code::kTimeout,
                fmt::format("no store at {} after {:.3f} s: {}", endpoint.to_string(),
                            to_seconds(Clock::now() - begin), last.message()));
}

Status StoreClient::set(std::string_view key, std::string_view value, Deadline deadline) {
  return connection_
      ->call({.operation = StoreOperation::kSet,
              .keys = {std::string(key)},
              .value = std::string(value)},
             deadline)
      .status();
}

Result<std::string> StoreClient::get(std::string_view key, Deadline deadline) {
  auto answer =
      connection_->call({.operation = StoreOperation::kGet, .keys = {std::string(key)}}, deadline);
  if (!answer.is_ok()) return answer.status();
  return std::move(answer->value);
}

Result<std::string> StoreClient::get_now(std::string_view key, Deadline deadline) {
  auto answer = connection_->call(
      {.operation = StoreOperation::kGetNow, .keys = {std::string(key)}}, deadline);
  if (!answer.is_ok()) return answer.status();
  return std::move(answer->value);
}

Result<std::int64_t> StoreClient::add(std::string_view key, std::int64_t delta, Deadline deadline) {
  auto answer = connection_->call(
      {.operation = StoreOperation::kAdd, .keys = {std::string(key)}, .delta = delta}, deadline);
  if (!answer.is_ok()) return answer.status();
  return answer->number;
}

Result<std::uint64_t> StoreClient::append(std::string_view key, std::string_view value,
                                          Deadline deadline) {
  auto answer = connection_->call({.operation = StoreOperation::kAppend,
                                   .keys = {std::string(key)},
                                   .value = std::string(value)},
                                  deadline);
  if (!answer.is_ok()) return answer.status();
  return static_cast<std::uint64_t>(answer->number);
}

Result<std::string> StoreClient::compare_and_swap(std::string_view key, std::string_view expected,
                                                  std::string_view desired, Deadline deadline) {
  auto answer = connection_->call({.operation = StoreOperation::kCompareAndSwap,
                                   .keys = {std::string(key)},
                                   .value = std::string(desired),
                                   .expected = std::string(expected)},
                                  deadline);
  if (!answer.is_ok()) return answer.status();
  return std::move(answer->value);
}

Result<bool> StoreClient::remove(std::string_view key, Deadline deadline) {
  auto answer = connection_->call(
      {.operation = StoreOperation::kRemove, .keys = {std::string(key)}}, deadline);
  if (!answer.is_ok()) return answer.status();
  return answer->number != 0;
}

// A wait for nothing is over at once.
Status StoreClient::wait(const std::vector<std::string>& keys, Deadline deadline) {
  if (keys.empty()) return Status::ok();
  return connection_->call({.operation = StoreOperation::kWait, .keys = keys}, deadline).status();
}

}  // namespace memspan
