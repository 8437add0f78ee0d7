// SPDX-License-Identifier: Apache-2.0
#include "world/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/environment.h"
#include "node/segment.h"

namespace memspan {
namespace {

constexpr int kVersion = 2;
constexpr std::int64_t kMostDescriptors = 1 << 20;

Status invalid(const std::string& text) {
  return {
      Code::kInvalidArgument,
      fmt::format("{} is \"{}\", which this version of memspan did not write; start the program "
                  "with the oshrun of the same installation, or unset it",
                  kLaunchVariable, text)};
}

std::vector<std::string> split_names(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    names.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

}  // namespace

NodeMap Launch::nodes() const {
  if (hosts.size() < 2) return NodeMap(size);
  std::vector<std::string> by_rank;
  for (std::size_t host = 0; host < hosts.size(); ++host)
    by_rank.insert(by_rank.end(), static_cast<std::size_t>(hosts[host]),
                   is_network() ? names[host] : simulated_host(static_cast<int>(host)));
  return NodeMap::of_hosts(by_rank);
}

std::string Launch::encode() const {
  std::string text = fmt::format("{}:{}:{}:{}:{}:{}:{}", kVersion, rank, size, segment, heap, store,
                                 format_host_sizes(hosts));
  if (is_network()) text += fmt::format("|{}|{}", fmt::join(names, ","), store_url);
  return text;
}

Result<Launch> Launch::decode(const std::string& text) {
  std::array<std::int64_t, 6> numbers{};
  std::string_view rest = text;
  for (std::int64_t& field : numbers) {
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos) return invalid(text);
    auto number = parse_integer(kLaunchVariable, rest.substr(0, colon), 0, kMostDescriptors);
    if (!number.is_ok()) return invalid(text);
    field = *number;
    rest.remove_prefix(colon + 1);
  }
  if (numbers[0] != kVersion || numbers[1] >= numbers[2]) return invalid(text);
  auto as_int = [&](std::size_t i) { return static_cast<int>(numbers[i]); };
  Launch launch{as_int(1), as_int(2), as_int(3), as_int(4), as_int(5)};
  if (rest.empty()) return launch;
  if (const std::size_t bar = rest.find('|'); bar != std::string_view::npos) {
    const std::size_t second = rest.find('|', bar + 1);
    if (second == std::string_view::npos) return invalid(text);
    launch.names = split_names(rest.substr(bar + 1, second - bar - 1));
    launch.store_url = rest.substr(second + 1);
    rest = rest.substr(0, bar);
  }
  auto hosts = parse_host_sizes(kLaunchVariable, rest);
  if (!hosts.is_ok() || std::accumulate(hosts->begin(), hosts->end(), 0) != launch.size)
    return invalid(text);
  if (launch.is_network() && launch.names.size() != hosts->size()) return invalid(text);
  launch.hosts = std::move(*hosts);
  return launch;
}

Result<std::optional<Launch>> Launch::from_environment() {
  auto text = environment(kLaunchVariable);
  if (!text) return std::optional<Launch>();
  MEMSPAN_TRY_ASSIGN(Launch launch, decode(*text), "reading what the launcher left");
  return std::optional<Launch>(launch);
}

Result<std::vector<int>> parse_host_sizes(const char* what, std::string_view text) {
  std::vector<int> sizes;
  for (std::string_view rest = text;;) {
    const std::size_t plus = rest.find('+');
    MEMSPAN_TRY_ASSIGN(const std::int64_t size,
                       parse_integer(what, rest.substr(0, plus), 1, kMostPeers),
                       "reading the sizes of hosts");
    sizes.push_back(static_cast<int>(size));
    if (plus == std::string_view::npos) return sizes;
    rest.remove_prefix(plus + 1);
  }
}

std::string format_host_sizes(const std::vector<int>& sizes) {
  return fmt::format("{}", fmt::join(sizes, "+"));
}

std::string simulated_host(int number) {
  return fmt::format("sim-{}", number);
}

}  // namespace memspan
