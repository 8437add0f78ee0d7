// SPDX-License-Identifier: Apache-2.0
#include "perf/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/environment.h"

namespace memspan::perf {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::size_t kMostSizes = 64;

Status wrong(std::string_view text, std::string_view why) {
  return {
      Code::kInvalidArgument,
      fmt::format("--sizes \"{}\": {}; allowed are 8:1m, 8:1m:4 and 8,64,1k, of 1 byte to 1 GiB",
                  text, why)};
}

Result<std::size_t> size_of(std::string_view whole, std::string_view text) {
  const auto bytes = parse_size("--sizes", text);
  if (!bytes.is_ok()) return wrong(whole, fmt::format("\"{}\" is not a size", text));
  if (*bytes > kMostBytes) return wrong(whole, fmt::format("\"{}\" is too much", text));
  return *bytes;
}

Result<std::vector<std::size_t>> range(std::string_view whole,
                                       const std::vector<std::string_view>& parts) {
  MEMSPAN_PASS_ASSIGN(const auto first, size_of(whole, parts[0]));
  MEMSPAN_PASS_ASSIGN(const auto last, size_of(whole, parts[1]));
  std::size_t factor = 2;
  if (parts.size() == 3) {
    const auto given = parse_integer("--sizes", parts[2], 2, 1024);
    if (!given.is_ok())
      return wrong(whole, fmt::format("\"{}\" is not a factor of 2 to 1024", parts[2]));
    factor = static_cast<std::size_t>(*given);
  }
  if (first > last) return wrong(whole, "the first is larger than the last");
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = first; bytes <= last; bytes *= factor) sizes.push_back(bytes);
  return sizes;
}

}  // namespace

Result<std::vector<std::size_t>> parse_sizes(std::string_view text) {
  const auto colons = split(text, ':');
  if (colons.size() > 3) return wrong(text, "there are more than two colons");
  if (colons.size() > 1) return range(text, colons);
  std::vector<std::size_t> sizes;
  for (const std::string_view part : split(text, ',')) {
    MEMSPAN_PASS_ASSIGN(const auto bytes, size_of(text, part));
    sizes.push_back(bytes);
  }
  if (sizes.size() > kMostSizes) return wrong(text, "there are more than 64");
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Result<Plan> plan_from_json(std::string_view text) {
  MEMSPAN_TRY_ASSIGN(const json::Value value, json::parse(text), "reading the plan");
  Plan plan;
  MEMSPAN_TRY(json::read(value, plan), "reading the plan");
  return plan;
}

}  // namespace memspan::perf
