// SPDX-License-Identifier: Apache-2.0
#include "transport/message/socket/socket_carrier.h"

#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <limits>

#include "core/environment.h"
#include "core/random.h"
#include "net/dial.h"
#include "net/socket_address.h"

namespace memspan::inline transport {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::string_view kTcpPrefix = "tcp:";
constexpr int kBacklog = 1024;

// "fe80::1" of "fe80::1%eth0". An interface's name means nothing on another host.
std::string without_zone(const std::string& host) {
  return host.substr(0, host.find('%'));
}

// The interface of "fe80::1%eth0"; 0 if none is named.
unsigned zone_of(const std::string& host) {
  const std::size_t percent = host.find('%');
  return percent == std::string::npos ? 0 : ::if_nametoindex(host.c_str() + percent + 1);
}

// A link-local address of IPv6 is looked for on the interface `zone`.
Result<SocketAddress> tcp_address(const std::string& host, std::uint16_t port, unsigned zone) {
  MEMSPAN_TRY_ASSIGN(SocketAddress address, SocketAddress::parse(without_zone(host), port),
                     "an address");
  if (!address.is_link_local()) return address;
  if (zone == 0)
    return Status(Code::kUnreachable,
                  fmt::format("{} is a link-local address, and MEMSPAN_NET does not say on which "
                              "interface of this host, as in fe80::1%eth0",
                              host));
  reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_scope_id = zone;
  return address;
}

Result<SocketAddress> parse_address(std::string_view text, unsigned zone) {
  if (text.substr(0, kUnixPrefix.size()) == kUnixPrefix)
    return SocketAddress::of_name(text.substr(kUnixPrefix.size()));
  if (const std::size_t colon = text.rfind(':');
      text.substr(0, kTcpPrefix.size()) == kTcpPrefix && colon > kTcpPrefix.size()) {
    MEMSPAN_TRY_ASSIGN(const std::int64_t port,
                       parse_integer("the port", text.substr(colon + 1), 1, 65535), "an address");
    return tcp_address(std::string(text.substr(kTcpPrefix.size(), colon - kTcpPrefix.size())),
                       static_cast<std::uint16_t>(port), zone);
  }
  return Status(
      Code::kInvalidArgument,
      fmt::format("\"{}\" is not an address; allowed are unix:NAME and tcp:HOST:PORT", text));
}

void set(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

bool is_near(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_rtt != 0 &&
         info.tcpi_rtt <= kNearUs;
}

// Small frames are sent at once. Returns the bytes that may be in flight; 0: the kernel decides.
std::size_t tune(int socket) {
  int family = 0;
  socklen_t length = sizeof family;
  ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &length);
  if (family == AF_UNIX) return kNearSendBuffer;
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  // The limit of silence decides when a peer is lost, not the kernel.
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, std::numeric_limits<int>::max());
  const std::size_t bytes = is_near(socket) ? kNearSendBuffer : 0;
  if (bytes != 0) set(socket, SOL_SOCKET, SO_SNDBUF, static_cast<int>(bytes));
  return bytes;
}

class SocketStream final : public ByteStream {
 public:
  explicit SocketStream(Fd socket)
      : socket_(std::move(socket)), send_buffer_(tune(socket_.get())) {}

  int descriptor() const override { return socket_.get(); }
  // The peer's buffer most likely has this size.
  std::size_t window() const override { return send_buffer_ == 0 ? kFarWindow : kNearSendBuffer; }
  ssize_t receive(std::span<const iovec> to) override {
    msghdr message = header(to);
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    if (got > 0) return got;
    return got < 0 && is_for_now(errno) ? 0 : -1;
  }
  ssize_t send(std::span<const iovec> from) override {
    msghdr message = header(from);
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    return is_for_now(errno) ? 0 : -1;
  }
  void cut() override { ::shutdown(socket_.get(), SHUT_RDWR); }

 private:
  static msghdr header(std::span<const iovec> parts) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = parts.size();
    return message;
  }
  static bool is_for_now(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ENOBUFS;
  }
  const Fd socket_;
  const std::size_t send_buffer_;
};

class SocketListener final : public Listener {
 public:
  SocketListener(Fd socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}
  int descriptor() const override { return socket_.get(); }
  std::string address() const override { return address_; }
  std::unique_ptr<ByteStream> accept() override {
    while (true) {
      Fd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket.is_valid()) return std::make_unique<SocketStream>(std::move(socket));
      if (errno != EINTR && errno != ECONNABORTED) return nullptr;
    }
  }

 private:
  const Fd socket_;
  const std::string address_;
};

class SocketOpening final : public Opening {
 public:
  SocketOpening(const SocketAddress& to, std::string address)
      : dialer_(to), address_(std::move(address)) {}

  int descriptor() const override { return dialer_.descriptor(); }
  Clock::time_point next() const override { return dialer_.next(); }
  Result<std::unique_ptr<ByteStream>> step() override {
    auto [socket, error] = dialer_.step();
    if (error == EINPROGRESS) return std::unique_ptr<ByteStream>();
    if (error != 0)
      return Status(Code::kUnreachable, fmt::format("{}: {}", address_, std::strerror(error)));
    return std::unique_ptr<ByteStream>(std::make_unique<SocketStream>(std::move(socket)));
  }

 private:
  Dialer dialer_;
  const std::string address_;
};

class SocketCarrier final : public Carrier {
 public:
  explicit SocketCarrier(const SocketOptions& options)
      : options_(options), zone_(zone_of(options.host)) {}
  std::string_view name() const override { return "socket"; }

  Result<std::unique_ptr<Listener>> listen() override {
    const bool is_unix = options_.family == SocketOptions::Family::kUnix;
    const std::string name = "memspan-" + random_hex(8);
    MEMSPAN_TRY_ASSIGN(
        SocketAddress address,
        is_unix ? SocketAddress::of_name(name) : tcp_address(options_.host, 0, zone_), "listening");
    Fd socket = open_socket(address);
    if (!socket.is_valid()) return Status::from_errno("socket");
    if (int error = bind_and_listen(socket.get(), address, kBacklog); error != 0)
      return Status::from_errno(
          fmt::format("listening at {}", is_unix ? "an abstract socket" : options_.host), error);
    MEMSPAN_TRY_ASSIGN(address, SocketAddress::of_socket(socket.get()), "listening");
    return std::unique_ptr<Listener>(std::make_unique<SocketListener>(
        std::move(socket),
        is_unix ? fmt::format("{}{}", kUnixPrefix, name)
                : fmt::format("{}{}:{}", kTcpPrefix, without_zone(options_.host), address.port())));
  }

  Result<std::unique_ptr<Opening>> connect(const std::string& address) override {
    MEMSPAN_TRY_ASSIGN(const SocketAddress to, parse_address(address, zone_), "connecting");
    return std::unique_ptr<Opening>(std::make_unique<SocketOpening>(to, address));
  }

 private:
  const SocketOptions options_;
  const unsigned zone_;  // of a host with a link-local address; else 0
};

}  // namespace

std::unique_ptr<Carrier> make_socket_carrier(const SocketOptions& options) {
  return std::make_unique<SocketCarrier>(options);
}

}  // namespace memspan::inline transport
