// SPDX-License-Identifier: Apache-2.0
#include "core/metrics_server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "core/thread.h"

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
  Fd socket;
  Clock::time_point until;
  std::string request = {};
  std::string answer = {};
  std::size_t sent = 0;
};

Result<std::unique_ptr<MetricsServer>> MetricsServer::listen(const std::string& host,
                                                             std::uint16_t port,
                                                             MakeText make_text) {
  auto found = listen_at(host, port);
  if (!found.is_ok()) return found.status();
  std::unique_ptr<MetricsServer> server(new MetricsServer(
      std::move(found->socket), found->port, found->is_loopback, std::move(make_text)));
  MEMSPAN_TRY_ASSIGN(server->ends_, WakeEvent::create(), "serving metrics");
  MEMSPAN_TRY_ASSIGN(server->thread_, start_thread("metrics", [it = server.get()] { it->run(); }),
                     "serving metrics");
  return server;
}

MetricsServer::MetricsServer(Fd listener, std::uint16_t port, bool is_loopback, MakeText make_text)
    : listener_(std::move(listener)),
      port_(port),
      is_loopback_(is_loopback),
      make_text_(std::move(make_text)) {}

MetricsServer::~MetricsServer() {
  if (!thread_.joinable()) return;
  ends_.ring();
  thread_.join();
}

void MetricsServer::run() {
  std::deque<Connection> connections;  // the oldest first
  Deadline paused = Deadline::after(Duration::zero());
  std::vector<pollfd> polled;
  while (true) {
    polled = {{.fd = ends_.descriptor(), .events = POLLIN, .revents = 0},
              {.fd = paused.has_passed() ? listener_.get() : -1, .events = POLLIN, .revents = 0}};
    for (const Connection& one : connections) {
      const short events = one.answer.empty() ? POLLIN : POLLOUT;
      polled.push_back({.fd = one.socket.get(), .events = events, .revents = 0});
    }
    Deadline next = paused.has_passed() ? Deadline::never() : paused;
    if (!connections.empty()) next = next.until(connections.front().until);
    if (::poll(polled.data(), polled.size(), next.remaining_poll_ms()) < 0) continue;  // a signal
    if (polled[0].revents != 0) return;
    auto looked_at = polled.begin() + 2;
    std::erase_if(connections, [&, now = Clock::now()](Connection& one) {
      const short events = looked_at++->revents;
      return now >= one.until || (events & (POLLERR | POLLHUP)) != 0 ||
             (events != 0 && !serve(one));
    });
    if (polled[1].revents == 0) continue;
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.is_valid()) {
      if (connections.size() >= kMostConnections) connections.pop_front();
      connections.push_back({std::move(socket), Clock::now() + kPatience});
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      paused = Deadline::after(kPauseWithoutDescriptors);  // its queue would wake us without end
    }
  }
}

bool MetricsServer::serve(Connection& connection) {
  if (connection.answer.empty()) return read_request(connection);
  const ssize_t sent = send(connection.socket.get(), connection.answer.data() + connection.sent,
                            connection.answer.size() - connection.sent, MSG_NOSIGNAL);
  if (sent < 0) return errno == EINTR || errno == EAGAIN;
  connection.sent += static_cast<std::size_t>(sent);
  return connection.sent < connection.answer.size();
}

bool MetricsServer::read_request(Connection& connection) {
  char bytes[2048];
  const ssize_t taken = recv(connection.socket.get(), bytes, sizeof bytes, 0);
  if (taken < 0) return errno == EINTR || errno == EAGAIN;
  if (taken == 0) return false;
  connection.request.append(bytes, static_cast<std::size_t>(taken));
  if (connection.request.find(kEndOfRequest) != std::string::npos)
    connection.answer = answer_to(connection.request);
  else if (connection.request.size() > kMostRequestBytes)
    connection.answer = refusal("431 Request Header Fields Too Large");
  return true;
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
