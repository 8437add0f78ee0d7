// SPDX-License-Identifier: Apache-2.0
#include "net/trusted_networks.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <cstring>

#include "core/environment.h"

namespace memspan::inline net {
namespace {

constexpr const char* kVariable = "MEMSPAN_TRUSTED_FABRIC";
constexpr int kMappedBits = 96;  // in front of an IPv4 address

using Bytes = std::array<std::uint8_t, 16>;

bool is_v4(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1;
}

std::optional<Bytes> parse_address(const std::string& text) {
  const std::string mapped = is_v4(text) ? "::ffff:" + text : text;
  Bytes bytes{};
  if (::inet_pton(AF_INET6, mapped.c_str(), bytes.data()) != 1) return std::nullopt;
  return bytes;
}

bool is_same(const Bytes& a, const Bytes& b, int bits) {
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (std::memcmp(a.data(), b.data(), whole) != 0) return false;
  return bits % 8 == 0 || ((a[whole] ^ b[whole]) >> (8 - bits % 8)) == 0;
}

}  // namespace

Result<TrustedNetworks> TrustedNetworks::from_environment() {
  return parse(environment_or(kVariable, ""));
}

Result<TrustedNetworks::Subnet> TrustedNetworks::parse_subnet(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string address(text.substr(0, slash));
  const auto bytes = parse_address(address);
  const int first = is_v4(address) ? kMappedBits : 0;
  Result<std::int64_t> bits = std::int64_t{128 - first};
  if (slash < text.size()) bits = parse_integer(kVariable, text.substr(slash + 1), 0, 128 - first);
  if (!bytes || !bits.is_ok())
    return Status(Code::kInvalidArgument,
                  fmt::format("{} has \"{}\"; allowed are 1, 0, and subnets with commas between "
                              "them, such as 10.0.0.0/8,fd00::/8",
                              kVariable, text));
  return Subnet{*bytes, first + static_cast<int>(*bits)};
}

Result<TrustedNetworks> TrustedNetworks::parse(std::string_view text) {
  TrustedNetworks networks;
  if (text == "1") networks.are_all_ = true;
  if (text.empty() || text == "0" || text == "1") return networks;
  for (const std::string_view part : split(text, ',')) {
    MEMSPAN_PASS_ASSIGN(networks.subnets_.emplace_back(), parse_subnet(part));
  }
  return networks;
}

bool TrustedNetworks::contain(const std::string& address) const {
  if (are_all_) return true;
  const auto bytes = parse_address(address.substr(0, address.find('%')));
  if (!bytes) return false;
  const bool has_four_bytes = is_v4(address);
  const auto is_in = [&](const Subnet& subnet) {  // ::/0 has no address of IPv4
    return (!has_four_bytes || subnet.bits >= kMappedBits) &&
           is_same(*bytes, subnet.bytes, subnet.bits);
  };
  static const Subnet kLoopback[] = {{*parse_address("127.0.0.0"), kMappedBits + 8},
                                     {*parse_address("::1"), 128}};
  return std::any_of(std::begin(kLoopback), std::end(kLoopback), is_in) ||
         std::any_of(subnets_.begin(), subnets_.end(), is_in);
}

Status TrustedNetworks::check(const std::string& address, std::string_view why,
                              std::string_view otherwise) const {
  if (contain(address)) return Status::ok();
  return {Code::kAuth,
          fmt::format("{} at {}, which is neither a loopback address nor on a network that is "
                      "declared trusted; set {} to 1 or to the trusted subnets (such as "
                      "10.0.0.0/8), or {}",
                      why, address, kVariable, otherwise)};
}

}  // namespace memspan::inline net
