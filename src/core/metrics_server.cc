// SPDX-License-Identifier: Apache-2.0
#include "core/metrics_server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace memspan {
namespace {

constexpr Duration kPauseWithoutDescriptors = std::chrono::milliseconds(200);
constexpr std::string_view kEndOfRequest = "\r\n\r\n";

struct Found {
  Fd socket;
  std::uint16_t port;
  bool is_loopback;
};

bool is_loopback_address(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24) == 127;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

Status bind_to(const addrinfo& where, Found& found) {
  found.socket = Fd(socket(where.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!found.socket.is_valid()) return Status::from_errno("socket");
  const int on = 1;
  setsockopt(found.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(found.socket.get(), where.ai_addr, where.ai_addrlen) != 0 ||
      listen(found.socket.get(), 16) != 0)
    return Status::from_errno("listening");
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(found.socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return Status::from_errno("getsockname");
  // sin_port and sin6_port are at the same place.
  found.port = ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  found.is_loopback = is_loopback_address(address);
  return Status::ok();
}

Result<Found> listen_at(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first) != 0)
    return Status(Code::kInvalidArgument,
                  fmt::format("the address of metrics is \"{}\"; allowed is a number, as 127.0.0.1 "
                              "or ::1",
                              host));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> where(first, freeaddrinfo);
  Found found{};
  MEMSPAN_TRY(bind_to(*where, found), fmt::format("metrics at {}:{}", host, port));
  return found;
}

std::string response(std::string_view status, std::string_view type, std::string_view body,
                     bool has_body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, type, body.size(), has_body ? body : std::string_view());
}

std::string refusal(std::string_view status) {
  return response(status, "text/plain; charset=utf-8", fmt::format("{}\n", status), true);
}

// The format escapes backslash, quote and end of line.
std::string escaped(std::string_view value) {
  std::string result;
  for (const char letter : value) {
    if (letter == '\\' || letter == '"') result += '\\';
    if (letter == '\n')
      result += "\\n";
    else
      result += letter;
  }
  return result;
}

}  // namespace

struct MetricsServer::Connection {
  explicit Connection(Fd taken) : socket(std::move(taken)) {}
  const Fd socket;
  std::string request;
  std::string answer;
  std::size_t sent = 0;
  EventLoop::Token watch = 0;
  EventLoop::Token limit = 0;
};

Result<std::unique_ptr<MetricsServer>> MetricsServer::listen(const std::string& host,
                                                             std::uint16_t port,
                                                             MakeText make_text) {
  auto found = listen_at(host, port);
  if (!found.is_ok()) return found.status();
  std::unique_ptr<MetricsServer> server(new MetricsServer(
      std::move(found->socket), found->port, found->is_loopback, std::move(make_text)));
  MEMSPAN_TRY(server->start(), "serving metrics");
  return server;
}

MetricsServer::MetricsServer(Fd listener, std::uint16_t port, bool is_loopback, MakeText make_text)
    : listener_(std::move(listener)),
      port_(port),
      is_loopback_(is_loopback),
      make_text_(std::move(make_text)) {}

MetricsServer::~MetricsServer() = default;

Status MetricsServer::start() {
  MEMSPAN_TRY_ASSIGN(loop_, EventLoop::start("metrics"), "starting a thread");
  loop_->call_soon([this] { watch_listener(); });
  return Status::ok();
}

void MetricsServer::watch_listener() {
  auto watched = loop_->watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept(); });
  accepting_ = watched.is_ok() ? *watched : 0;
}

void MetricsServer::accept() {
  while (true) {
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.is_valid()) {
      add(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    // No descriptors are left: a client in the queue would wake us without end.
    loop_->cancel(std::exchange(accepting_, 0));
    loop_->call_at(Clock::now() + kPauseWithoutDescriptors, [this] { watch_listener(); });
    return;
  }
}

void MetricsServer::add(Fd socket) {
  if (connections_.size() >= kMostConnections) end(connections_.begin()->first);
  const std::uint64_t id = next_++;
  auto made = std::make_unique<Connection>(std::move(socket));
  auto watched = loop_->watch(made->socket.get(), EPOLLIN,
                              [this, id](std::uint32_t events) { serve(id, events); });
  if (!watched.is_ok()) return;
  made->watch = *watched;
  made->limit = loop_->call_at(Clock::now() + kPatience, [this, id] { end(id); });
  connections_.emplace(id, std::move(made));
}

void MetricsServer::end(std::uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const std::unique_ptr<Connection> ended = std::move(found->second);
  connections_.erase(found);
  loop_->cancel(ended->watch);
  loop_->cancel(ended->limit);
}

void MetricsServer::serve(std::uint64_t id, std::uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) return end(id);
  if (connection.answer.empty())
    read_request(id, connection);
  else
    write_answer(id, connection);
}

void MetricsServer::read_request(std::uint64_t id, Connection& connection) {
  char bytes[2048];
  const ssize_t taken = recv(connection.socket.get(), bytes, sizeof bytes, 0);
  if (taken < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (taken <= 0) return end(id);
  connection.request.append(bytes, static_cast<std::size_t>(taken));
  const bool is_whole = connection.request.find(kEndOfRequest) != std::string::npos;
  if (!is_whole && connection.request.size() <= kMostRequestBytes) return;
  connection.answer =
      is_whole ? answer_to(connection.request) : refusal("431 Request Header Fields Too Large");
  loop_->cancel(connection.watch);
  auto watched = loop_->watch(connection.socket.get(), EPOLLOUT,
                              [this, id](std::uint32_t events) { serve(id, events); });
  if (!watched.is_ok()) return end(id);
  connection.watch = *watched;
}

void MetricsServer::write_answer(std::uint64_t id, Connection& connection) {
  while (connection.sent < connection.answer.size()) {
    const ssize_t sent = send(connection.socket.get(), connection.answer.data() + connection.sent,
                              connection.answer.size() - connection.sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent <= 0) return end(id);
    connection.sent += static_cast<std::size_t>(sent);
  }
  end(id);
}

std::string MetricsServer::answer_to(const std::string& request) {
  const std::string_view line = std::string_view(request).substr(0, request.find("\r\n"));
  const std::string_view method = line.substr(0, line.find(' '));
  const std::string_view rest = line.substr(std::min(line.size(), method.size() + 1));
  const std::string_view path = rest.substr(0, rest.find_first_of(" ?"));
  if (method != "GET" && method != "HEAD") return refusal("405 Method Not Allowed");
  if (path != "/metrics") return refusal("404 Not Found");
  return response("200 OK", "text/plain; version=0.0.4; charset=utf-8", text(), method == "GET");
}

const std::string& MetricsServer::text() {
  const auto now = Clock::now();
  if (text_.empty() || now >= made_ + kFreshness) {
    text_ = make_text_();
    made_ = now;
  }
  return text_;
}

void MetricsText::begin(std::string_view name, Type type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                       type == Type::kCounter ? "counter" : "gauge");
}

void MetricsText::add(Labels labels, double value) {
  text_ += name_;
  std::string_view before = "{";
  for (const auto& [name, text] : labels) {
    text_ += fmt::format("{}{}=\"{}\"", before, name, escaped(text));
    before = ",";
  }
  text_ += fmt::format("{} {}\n", labels.size() == 0 ? "" : "}", value);
}

}  // namespace memspan
