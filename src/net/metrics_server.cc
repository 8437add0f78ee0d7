// SPDX-License-Identifier: Apache-2.0
#include "net/metrics_server.h"

#include <fmt/format.h>
#include <poll.h>

#include <deque>
#include <thread>
#include <vector>

#include "core/log.h"
#include "core/thread.h"
#include "net/endpoint.h"
#include "net/socket_address.h"

namespace memspan::inline net {
namespace {

constexpr int kMostConnections = 16;
constexpr std::size_t kMostRequestBytes = 8192;
constexpr Duration kPatience = std::chrono::seconds(5);
constexpr Duration kFreshness = std::chrono::milliseconds(100);
constexpr Duration kPauseWithoutDescriptors = std::chrono::milliseconds(200);
constexpr std::string_view kEndOfRequest = "\r\n\r\n";

std::string response(std::string_view status, std::string_view type, std::string_view body,
                     bool has_body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, type, body.size(), has_body ? body : std::string_view());
}

std::string refusal(std::string_view status) {
  return response(status, "text/plain; charset=utf-8", fmt::format("{}\n", status), true);
}

// Thread-safe. Runs a thread of its own from start() to destruction.
class MetricsServer final : public TextServer {
 public:
  MetricsServer(Fd listener, std::uint16_t port, MakeText make_text)
      : listener_(std::move(listener)), port_(port), make_text_(std::move(make_text)) {}
  ~MetricsServer() override {
    if (!thread_.joinable()) return;
    ends_.ring();
    thread_.join();
  }
  // Call it once.
  Status start() {
    MEMSPAN_TRY_ASSIGN(ends_, WakeEvent::create(), "serving metrics");
    MEMSPAN_TRY_ASSIGN(thread_, start_thread("metrics", [this] { run(); }), "serving metrics");
    return Status::ok();
  }

  void forget_in_child() override { listener_.reset(); }
  std::uint16_t port() const override { return port_; }

 private:
  struct Connection {
    Fd socket;
    Clock::time_point until;
    std::string request = {};
    std::string answer = {};
    std::size_t sent = 0;
  };
  void run() {
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
        if (connections.size() >= std::size_t{kMostConnections}) connections.pop_front();
        connections.push_back({std::move(socket), Clock::now() + kPatience});
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        paused = Deadline::after(kPauseWithoutDescriptors);  // its queue would wake us without end
      }
    }
  }
  // False when the connection has ended.
  bool serve(Connection& connection) {
    if (connection.answer.empty()) return read_request(connection);
    const ssize_t sent = send(connection.socket.get(), connection.answer.data() + connection.sent,
                              connection.answer.size() - connection.sent, MSG_NOSIGNAL);
    if (sent < 0) return errno == EINTR || errno == EAGAIN;
    connection.sent += static_cast<std::size_t>(sent);
    return connection.sent < connection.answer.size();
  }
  bool read_request(Connection& connection) {
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
  std::string answer_to(const std::string& request) {
    const std::string_view line = std::string_view(request).substr(0, request.find("\r\n"));
    const std::string_view method = line.substr(0, line.find(' '));
    const std::string_view rest = line.substr(std::min(line.size(), method.size() + 1));
    const std::string_view path = rest.substr(0, rest.find_first_of(" ?"));
    if (method != "GET" && method != "HEAD") return refusal("405 Method Not Allowed");
    if (path != "/metrics") return refusal("404 Not Found");
    return response("200 OK", "text/plain; version=0.0.4; charset=utf-8", text(), method == "GET");
  }
  const std::string& text() {
    const auto now = Clock::now();
    if (text_.empty() || now >= made_ + kFreshness) {
      text_ = make_text_();
      made_ = now;
    }
    return text_;
  }

  Fd listener_;
  const std::uint16_t port_;
  const MakeText make_text_;
  // Only the thread uses these two.
  std::string text_;
  Clock::time_point made_;
  WakeEvent ends_;
  std::thread thread_;
};
}  // namespace

Result<std::unique_ptr<TextServer>> serve_metrics(std::string_view what, std::string_view place,
                                                  TextServer::MakeText make_text) {
  const auto at = Endpoint::parse_place(place);
  if (!at.is_ok())
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is \"{}\": {}; allowed is HOST:PORT, as 127.0.0.1:9464", what,
                              place, at.status().message()));
  const std::string where = fmt::format("{}: metrics at {}:{}", what, at->host, at->port);
  MEMSPAN_TRY_ASSIGN(SocketAddress address, SocketAddress::parse(at->host, at->port), where);
  Fd listener = open_socket(address);
  if (!listener.is_valid()) return Status::from_errno("socket").annotate(where);
  if (int error = bind_and_listen(listener.get(), address, kMostConnections); error != 0)
    return Status::from_errno("listening", error).annotate(where);
  MEMSPAN_TRY_ASSIGN(address, SocketAddress::of_socket(listener.get()), where);
  auto server =
      std::make_unique<MetricsServer>(std::move(listener), address.port(), std::move(make_text));
  MEMSPAN_TRY(server->start(), what);
  if (!address.is_loopback())
    log_line(LogLevel::kWarn,
             fmt::format(
                 "{}: any process that can connect to {} can read the metrics, without a password",
                 what, place));
  return std::unique_ptr<TextServer>(std::move(server));
}

}  // namespace memspan::inline net
