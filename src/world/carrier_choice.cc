// SPDX-License-Identifier: Apache-2.0
#include "world/carrier_choice.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "core/environment.h"
#include "core/fd.h"
#include "core/log.h"
#include "world/encrypted_carrier.h"

namespace memspan {
namespace {

constexpr const char* kVariable = "MEMSPAN_CARRIER";
constexpr const char* kNetVariable = "MEMSPAN_NET";
constexpr const char* kEncryptVariable = "MEMSPAN_ENCRYPT_DATA";
constexpr const char* kSilenceVariable = "MEMSPAN_SILENCE_LIMIT";
constexpr Duration kLeastSilence = std::chrono::milliseconds(500);

std::optional<std::string> numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST];
  if (getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
    return std::nullopt;
  return std::string(text);
}

// Nothing is sent: connecting a datagram socket only asks for the way.
std::optional<std::string> address_towards(const Endpoint& there) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(there.host.c_str(), std::to_string(there.port).c_str(), &hints, &found) != 0)
    return std::nullopt;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const Fd socket(::socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    auto* const generic = reinterpret_cast<sockaddr*>(&own);
    if (socket.is_valid() && connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0 &&
        getsockname(socket.get(), generic, &length) == 0)
      return numeric(generic, length);
  }
  return std::nullopt;
}

// Those of this host, until `visit(entry, text)` says that it has found what it wants.
template <typename Visit>
void visit_addresses(Visit visit) {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(found, freeifaddrs);
  for (const ifaddrs* each = found; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const auto text =
        numeric(each->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (text && visit(*each, *text)) return;
  }
}

std::optional<std::string> first_address() {
  std::optional<std::string> first;
  visit_addresses([&](const ifaddrs& each, const std::string& text) {
    if (each.ifa_addr->sa_family != AF_INET || (each.ifa_flags & IFF_LOOPBACK) != 0) return false;
    first = text;
    return true;
  });
  return first;
}

bool is_numeric(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

// The interface with that address; empty if there is none.
std::string interface_of(const std::string& address) {
  std::string name;
  visit_addresses([&](const ifaddrs& each, const std::string& text) {
    if (text == address) name = each.ifa_name;
    return text == address;
  });
  return name;
}

// Of an interface of that name; IPv4 before IPv6.
std::optional<std::string> address_of(const std::string& interface) {
  std::optional<std::string> found;
  visit_addresses([&](const ifaddrs& each, const std::string& text) {
    const bool is_v4 = each.ifa_addr->sa_family == AF_INET;
    const bool is_link_local = text.find('%') != std::string::npos;
    if (interface != each.ifa_name || is_link_local || (found && !is_v4)) return false;
    found = text;
    return is_v4;
  });
  return found;
}

// MEMSPAN_NET: a numeric address, or an interface of this host.
Result<std::optional<std::string>> named_address() {
  const std::optional<std::string> text = environment(kNetVariable);
  if (!text || is_numeric(*text)) return text;
  if (auto address = address_of(*text)) return address;
  return Status(Code::kInvalidArgument,
                fmt::format("{} is \"{}\"; allowed are a numeric address and an interface of this "
                            "host that has one",
                            kNetVariable, *text));
}

Result<std::string> choose_address(Reach reach, const std::optional<Endpoint>& store) {
  auto named = named_address();
  if (!named.is_ok()) return named.status();
  if (*named) return **named;
  if (reach == Reach::kOneKernel) return std::string("127.0.0.1");
  auto own = store ? address_towards(*store) : std::nullopt;
  if (!own) own = first_address();
  if (own) return *own;
  return Status(Code::kUnavailable,
                fmt::format("no interface has an address at which processes of other hosts could "
                            "reach this one; {} names one",
                            kNetVariable));
}

Result<Duration> silence_limit() {
  MEMSPAN_TRY_ASSIGN(const Duration limit,
                     parse_time(kSilenceVariable, environment_or(kSilenceVariable, "2s")),
                     "choosing a carrier");
  if (limit == Duration::zero()) return Duration::max();
  if (limit >= kLeastSilence) return limit;
  return Status(Code::kInvalidArgument,
                fmt::format("{} is \"{}\"; allowed are 500ms to an hour, and 0s for never",
                            kSilenceVariable, *environment(kSilenceVariable)));
}

// Before anything is loaded.
Result<CarrierOptions> choose_ucx(Reach reach, const std::optional<Endpoint>& store) {
  constexpr const char* kDevices = "UCX_NET_DEVICES";
  CarrierOptions options;
  options.kind = CarrierOptions::Kind::kUcx;
  UcxOptions& ucx = options.ucx;
  MEMSPAN_TRY_ASSIGN(ucx.host, choose_address(reach, store), "the carrier ucx");
  MEMSPAN_TRY_ASSIGN(ucx.trusted, TrustedNetworks::from_environment(), "the carrier ucx");
  MEMSPAN_TRY(check_ucx_address(ucx.trusted, ucx.host), "the carrier ucx");
  if (environment(kDevices) && !ucx.trusted.are_all())
    return Status(Code::kAuth,
                  fmt::format("the carrier ucx: with {} set UCX may use any network, which needs "
                              "MEMSPAN_TRUSTED_FABRIC=1; {} names one interface or address instead",
                              kDevices, kNetVariable));
  // Declared trusted as a whole, the fabric is UCX's to choose from.
  if (!ucx.trusted.are_all() || environment(kNetVariable)) ucx.device = interface_of(ucx.host);
  if (!has_ucx_module())
    return Status(Code::kNotSupported,
                  fmt::format("{} is ucx, and this installation has no libmemspan_ucx.so, which is "
                              "built where UCX is (libucx-dev); socket needs nothing",
                              kVariable));
  return options;
}

}  // namespace

Result<CarrierOptions> choose_carrier(Reach reach, const std::optional<Endpoint>& store) {
  constexpr std::string_view kTcp = "tcp";
  const bool is_asked_for = environment(kVariable).has_value();
  std::string text = environment_or(kVariable, "socket");
  MEMSPAN_TRY_ASSIGN(const auto encrypts, environment_integer(kEncryptVariable, 0, 1),
                     "choosing a carrier");
  CarrierOptions options;
  options.encrypts = encrypts.value_or(0) == 1;
  if (text == "ucx" && options.encrypts)
    return Status(Code::kNotSupported,
                  fmt::format("{} is 1 and {} is ucx, which does not encrypt; socket does",
                              kEncryptVariable, kVariable));
  MEMSPAN_TRY_ASSIGN(const Duration silence, silence_limit(), "choosing a carrier");
  if (text == "ucx") {
    auto chosen = choose_ucx(reach, store);
    if (chosen.is_ok()) chosen->silence_limit = silence;
    return chosen;
  }
  if (text == "socket") text = reach == Reach::kOneKernel ? "unix" : "tcp";
  if (text == "unix") return options;
  options.silence_limit = silence;
  options.sockets.family = SocketOptions::Family::kTcp;
  std::string given;
  if (text.rfind("tcp:", 0) == 0) given = text.substr(kTcp.size() + 1);
  if (text != kTcp && !is_numeric(given))
    return Status(
        Code::kInvalidArgument,
        fmt::format("{} is \"{}\"; allowed are socket, ucx, unix, tcp, and tcp:ADDRESS with the "
                    "numeric address of an interface",
                    kVariable, text));
  if (given.empty()) {
    auto address = choose_address(reach, store);
    if (!address.is_ok()) return address.status();
    given = std::move(address).value();
  }
  options.sockets.host = given;
  if (!is_asked_for)
    log_line(LogLevel::kInfo,
             fmt::format("other hosts are reached by TCP sockets, from {}; UCX {}", given,
                         has_ucx_module() ? "is there and not asked for (MEMSPAN_CARRIER=ucx)"
                                          : "is not in this installation"));
  return options;
}

Result<std::unique_ptr<Carrier>> make_carrier(const CarrierOptions& options) {
  if (options.kind == CarrierOptions::Kind::kUcx) return make_ucx_carrier(options.ucx);
  return make_encrypted_carrier(make_socket_carrier(options.sockets),
                                options.encrypts ? Encryption::kAlways : Encryption::kWhereAsked);
}

std::optional<std::string> address_for_other_hosts(const Endpoint& there) {
  // A host's own name often means its loopback.
  auto own = address_towards(there);
  if (own && own->rfind("127.", 0) != 0 && *own != "::1") return own;
  return first_address();
}

}  // namespace memspan
