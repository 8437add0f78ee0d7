// SPDX-License-Identifier: Apache-2.0
#include "net/socket_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstddef>

namespace memspan::inline net {
namespace {

// Its port is also that of an IPv6 address.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
const sockaddr_in& v4(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr_in&>(address.storage);
}
const sockaddr_in6& v6(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr_in6&>(address.storage);
}

}  // namespace

Result<SocketAddress> SocketAddress::parse(const std::string& host, std::uint16_t port) {
  SocketAddress address;
  auto& four = reinterpret_cast<sockaddr_in&>(address.storage);
  if (::inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    address.length = sizeof four;
  } else {
    address.storage = {};
    auto& six = reinterpret_cast<sockaddr_in6&>(address.storage);
    const std::size_t percent = host.find('%');
    if (percent != std::string::npos)
      six.sin6_scope_id = ::if_nametoindex(host.c_str() + percent + 1);
    if ((percent != std::string::npos && six.sin6_scope_id == 0) ||
        ::inet_pton(AF_INET6, host.substr(0, percent).c_str(), &six.sin6_addr) != 1)
      return Status(Code::kInvalidArgument,
                    fmt::format("\"{}\" is not a numeric address of IPv4 or IPv6", host));
    six.sin6_family = AF_INET6;
    address.length = sizeof six;
  }
  address.set_port(port);
  return address;
}

Result<SocketAddress> SocketAddress::of_name(std::string_view name) {
  SocketAddress address;
  auto& native = reinterpret_cast<sockaddr_un&>(address.storage);
  if (name.empty() || name.size() >= sizeof native.sun_path)
    return Status(Code::kInvalidArgument, "the name of a Unix socket must have 1 to 107 bytes");
  native.sun_family = AF_UNIX;
  // The zero byte in front makes it abstract.
  std::memcpy(native.sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

SocketAddress SocketAddress::of(const sockaddr& from) {
  SocketAddress address;
  address.length = from.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(&address.storage, &from, address.length);
  return address;
}

Result<SocketAddress> SocketAddress::of_socket(int socket) {
  SocketAddress address;
  if (::getsockname(socket, address.get(), &address.length) != 0)
    return Status::from_errno("getsockname");
  return address;
}

Result<SocketAddress> SocketAddress::of_peer(int socket) {
  SocketAddress address;
  if (::getpeername(socket, address.get(), &address.length) != 0)
    return Status::from_errno("getpeername");
  return address;
}

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET) return (ntohl(v4(*this).sin_addr.s_addr) >> 24) == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6(*this).sin6_addr);
}

bool SocketAddress::is_link_local() const {
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6(*this).sin6_addr);
}

std::uint16_t SocketAddress::port() const {
  return ntohs(v4(*this).sin_port);
}

void SocketAddress::set_port(std::uint16_t port) {
  reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
}

std::string SocketAddress::host() const {
  char text[NI_MAXHOST];
  if (!is_ip() || ::getnameinfo(get(), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  return text;
}

Fd open_socket(const SocketAddress& address) {
  return Fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// With SO_REUSEADDR and port 0, the kernel may pick a port at which another process starts to
// listen first.
int bind_and_listen(int socket, const SocketAddress& address, int backlog) {
  const auto permit_reuse = [&, on = 1] {
    return !address.is_ip() || setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
  };
  // With it, the kernel may pick a port at which another socket listens at the same moment. Without
  // it, no socket could listen at this port for a minute after the connections of this one.
  const bool is_picked = address.port() == 0;
  if (!is_picked && !permit_reuse()) return errno;
  if (::bind(socket, address.get(), address.length) != 0) return errno;
  if (::listen(socket, backlog) != 0) return errno;
  return is_picked && !permit_reuse() ? errno : 0;
}

}  // namespace memspan::inline net
