// SPDX-License-Identifier: Apache-2.0
#include "world/launch.h"

#include <fmt/format.h>

#include <array>

#include "core/environment.h"

namespace memspan {
namespace {

constexpr int kVersion = 1;
constexpr std::int64_t kMostDescriptors = 1 << 20;

Status invalid(const std::string& text) {
  return {
      Code::kInvalidArgument,
      fmt::format("{} is \"{}\", which this version of memspan did not write; start the program "
                  "with the oshrun of the same installation, or unset it",
                  kLaunchVariable, text)};
}

}  // namespace

std::string Launch::encode() const {
  return fmt::format("{}:{}:{}:{}:{}:{}", kVersion, rank, size, board, heap, store);
}

Result<Launch> Launch::decode(const std::string& text) {
  std::array<std::int64_t, 6> numbers{};
  std::string_view rest = text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::size_t colon = rest.find(':');
    if ((colon == std::string_view::npos) != (i + 1 == numbers.size())) return invalid(text);
    auto number = parse_integer(kLaunchVariable, rest.substr(0, colon), 0, kMostDescriptors);
    if (!number.is_ok()) return invalid(text);
    numbers[i] = *number;
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
  }
  if (numbers[0] != kVersion || numbers[1] >= numbers[2]) return invalid(text);
  auto as_int = [&](std::size_t i) { return static_cast<int>(numbers[i]); };
  return Launch{as_int(1), as_int(2), as_int(3), as_int(4), as_int(5)};
}

Result<std::optional<Launch>> Launch::from_environment() {
  auto text = environment(kLaunchVariable);
  if (!text) return std::optional<Launch>();
  MEMSPAN_TRY_ASSIGN(Launch launch, decode(*text), "reading what the launcher left");
  return std::optional<Launch>(launch);
}

}  // namespace memspan
