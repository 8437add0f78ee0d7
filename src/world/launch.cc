// SPDX-License-Identifier: Apache-2.0
#include "world/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/environment.h"
#include "node/segment.h"

namespace memspan::inline world {
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
  const auto parts = split(text, '|');
  const auto fields = split(parts[0], ':');
  std::array<int, 6> numbers{};
  if ((parts.size() != 1 && parts.size() != 3) || fields.size() != numbers.size() + 1)
    return invalid(text);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto number = parse_integer(kLaunchVariable, fields[i], 0, kMostDescriptors);
    if (!number.is_ok()) return invalid(text);
    numbers[i] = static_cast<int>(*number);
  }
  if (numbers[0] != kVersion || numbers[1] >= numbers[2]) return invalid(text);
  Launch launch{numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]};
  if (fields.back().empty() && parts.size() == 1) return launch;
  auto hosts = parse_host_sizes(kLaunchVariable, fields.back());
  if (!hosts.is_ok() || std::accumulate(hosts->begin(), hosts->end(), 0) != launch.size)
    return invalid(text);
  launch.hosts = std::move(*hosts);
  if (parts.size() == 1) return launch;
  for (const std::string_view name : split(parts[1], ',')) launch.names.emplace_back(name);
  launch.store_url = parts[2];
  if (launch.names.size() != launch.hosts.size()) return invalid(text);
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
  for (const std::string_view part : split(text, '+')) {
    MEMSPAN_TRY_ASSIGN(const std::int64_t size, parse_integer(what, part, 1, kMostPeers),
                       "reading the sizes of hosts");
    sizes.push_back(static_cast<int>(size));
  }
  return sizes;
}

std::string format_host_sizes(const std::vector<int>& sizes) {
  return fmt::format("{}", fmt::join(sizes, "+"));
}

std::string simulated_host(int number) {
  return fmt::format("sim-{}", number);
}

}  // namespace memspan::inline world
