// SPDX-License-Identifier: Apache-2.0
#include "store/store_address.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/environment.h"

namespace memspan::inline store {
namespace {

constexpr std::string_view kEtcd = "etcd://";
constexpr std::string_view kDefaultPrefix = "memspan";
constexpr std::size_t kMostEndpoints = 64;
constexpr std::size_t kMostPrefixBytes = 256;  // of a user as well

Status invalid_address(std::string_view url, std::string_view why) {
  return {Code::kInvalidArgument, fmt::format("\"{}\" is not a store's address ({}); allowed are "
                                              "tcp://HOST:PORT[,tcp://HOST:PORT...] and "
                                              "etcd://[USER@]HOST:PORT[,HOST:PORT...][/PREFIX]",
                                              url, why)};
}

bool is_plain(char c) {
  return c > ' ' && c <= '~';
}

bool is_in_user(char c) {
  return is_plain(c) && c != ':' && c != ',';
}

std::string_view without_slashes(std::string_view text) {
  while (text.starts_with('/')) text.remove_prefix(1);
  while (text.ends_with('/')) text.remove_suffix(1);
  return text;
}

// Reads the places into an address whose kind is known.
Status parse_places(std::string_view url, std::string_view places, StoreAddress& address) {
  const bool needs_port = address.is_etcd() || places.find(',') != std::string_view::npos;
  address.endpoints.clear();
  for (const std::string_view place : split(places, ',')) {
    if (place.empty()) return invalid_address(url, "there is nothing before or behind a comma");
    auto endpoint = address.is_etcd() ? Endpoint::parse_place(place) : Endpoint::parse(place);
    if (!endpoint.is_ok() && address.is_etcd())
      return invalid_address(url, endpoint.status().message());
    if (!endpoint.is_ok()) return endpoint.status();
    if (endpoint->port == 0 && needs_port)
      return invalid_address(url, fmt::format("the port is 0, allowed{} are 1 to 65535",
                                              address.is_etcd() ? "" : " in a list"));
    address.endpoints.push_back(std::move(endpoint).value());
  }
  if (address.endpoints.size() <= kMostEndpoints) return Status::ok();
  return invalid_address(url, fmt::format("there are more than {} endpoints", kMostEndpoints));
}

Result<StoreAddress> parse_etcd(std::string_view url) {
  const std::string_view rest = url.substr(kEtcd.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view places = rest.substr(0, slash);
  const std::string_view prefix = without_slashes(rest.substr(slash));
  if (prefix.size() > kMostPrefixBytes || !std::all_of(prefix.begin(), prefix.end(), is_plain))
    return invalid_address(
        url, fmt::format("a prefix has at most {} characters and no blanks", kMostPrefixBytes));
  StoreAddress address;
  if (const std::size_t at = places.rfind('@'); at != std::string_view::npos) {
    address.user = places.substr(0, at);
    places.remove_prefix(at + 1);
    if (address.user.empty() || address.user.size() > kMostPrefixBytes ||
        !std::all_of(address.user.begin(), address.user.end(), is_in_user))
      return invalid_address("etcd://...",  // there may be a password in it
                             fmt::format("a user has 1 to {} characters and no blank, colon or "
                                         "comma; its password is in the file that "
                                         "MEMSPAN_ETCD_PASSWORD_FILE names",
                                         kMostPrefixBytes));
  }
  if (places.empty()) return invalid_address(url, "it names no host");
  address.kind = StoreAddress::Kind::kEtcd;
  address.prefix = prefix.empty() ? kDefaultPrefix : prefix;
  MEMSPAN_PASS(parse_places(url, places, address));
  return address;
}

}  // namespace

Result<StoreAddress> StoreAddress::parse(std::string_view url) {
  if (url.starts_with(kEtcd)) return parse_etcd(url);
  if (!url.starts_with("tcp://") && !url.starts_with("tcp6://"))
    return invalid_address(url, "it begins with neither tcp://, tcp6:// nor etcd://");
  StoreAddress address;
  MEMSPAN_PASS(parse_places(url, url, address));
  return address;
}

Status StoreAddress::check_may_be_hosted() const {
  if (is_etcd() || endpoints.size() == 1) return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("{} is a list of addresses, and a store that a member hosts has one: start "
                      "memspan-store at one of them",
                      to_string())};
}

std::string StoreAddress::to_string() const {
  std::string places;
  for (const Endpoint& each : endpoints)
    places.append(places.empty() ? 0 : 1, ',').append(is_etcd() ? each.place() : each.to_string());
  return is_etcd()
             ? fmt::format("{}{}{}{}/{}", kEtcd, user, user.empty() ? "" : "@", places, prefix)
             : places;
}

}  // namespace memspan::inline store
