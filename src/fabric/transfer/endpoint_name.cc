// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/endpoint_name.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

namespace memspan::transfer {
namespace {

constexpr std::size_t kMostBytes = 64;  // "[", 39 digits and colons, "]:65535", and some zeros

// Empty if it is not an address of that family.
std::string normal_address(int family, const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  char normal[INET6_ADDRSTRLEN];
  if (inet_pton(family, text.c_str(), bytes) != 1 ||
      inet_ntop(family, bytes, normal, sizeof normal) == nullptr)
    return "";
  return normal;
}

}  // namespace

Result<std::string> normal_name(std::string_view text) {
  const Status wrong(Code::kInvalidArgument,
                     fmt::format("invalid unique_id, which is \"{}\": allowed are ip:port and "
                                 "[ipv6]:port, with a port of 1 to 65535",
                                 text.substr(0, kMostBytes)));
  const std::size_t colon = text.rfind(':');
  if (text.size() > kMostBytes || colon == std::string_view::npos) return wrong;
  const std::string_view digits = text.substr(colon + 1);
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0 || port > 65535)
    return wrong;
  std::string_view host = text.substr(0, colon);
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (has_brackets) host = host.substr(1, host.size() - 2);
  if (!has_brackets)
    if (const std::string v4 = normal_address(AF_INET, std::string(host)); !v4.empty())
      return fmt::format("{}:{}", v4, port);
  if (const std::string v6 = normal_address(AF_INET6, std::string(host)); !v6.empty())
    return fmt::format("[{}]:{}", v6, port);
  return wrong;
}

}  // namespace memspan::transfer
