// SPDX-License-Identifier: Apache-2.0
#include "core/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>

namespace memspan::inline core {
namespace {

MEMSPAN_REMEDY(
    kWrongValue, "wrong-value",
    "The value of the variable, option or address is outside the allowed range.",
    "Correct it. `env | grep -E 'MEMSPAN|SHMEM|RANK|WORLD'` prints inherited variables.");

// The rest of a unit that may follow k, m, g and t: "MiB", "MB".
bool is_unit(std::string_view text) {
  if (!text.empty() && (text.front() | 0x20) == 'i' && text.size() == 2) text.remove_prefix(1);
  return text.empty() || (text.size() == 1 && (text.front() | 0x20) == 'b');
}

}  // namespace

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::string environment_or(const char* name, std::string_view fallback) {
  return environment(name).value_or(std::string(fallback));
}

std::vector<std::string> removed_variables() {
  constexpr std::pair<const char*, const char*> kRemoved[] = {
      {"MEMSPAN_AGENT_START_TIMEOUT", "set MEMSPAN_INIT_TIMEOUT"},
      {"MEMSPAN_AGENT_TIMEOUT", "set MEMSPAN_SILENCE_LIMIT"},
      {"MEMSPAN_CUDA_DEVICE", "set MEMSPAN_DEVICE=cuda:N"},
      {"MEMSPAN_ETCD_USER", "set MEMSPAN_STORE=etcd://USER@HOST:PORT"},
      {"MEMSPAN_MPI_LIBRARY", "load the MPI with LD_PRELOAD"},
      {"MEMSPAN_POPULATE", "set MEMSPAN_COMMIT=allocation"},
      {"MEMSPAN_PTRACER_SECONDS", "the table is written every 10 s"},
      {"MEMSPAN_SEND_BUFFER", "the bytes in flight follow from the round trip"},
      {"MEMSPAN_STACKS", "SIGUSR2 prints no stacks in a program that ignores or handles it"},
      {"MEMSPAN_STORE_URL", "set MEMSPAN_STORE"},
      {"MEMSPAN_THP", "prctl(PR_SET_THP_DISABLE) turns huge pages off"},
      {"MEMSPAN_TORCH_BUILD", "set MEMSPAN_TORCH_BUILD_DIR=none"},
      {"MEMSPAN_TRACE_EVENTS", "each thread keeps 65536 events"},
      {"MEMSPAN_UCX_RENDEZVOUS", "set UCX_RNDV_THRESH"},
  };
  std::vector<std::string> lines;
  for (const auto& [name, successor] : kRemoved)
    if (std::getenv(name) != nullptr)
      lines.push_back(fmt::format("{} has no effect any more: {}", name, successor));
  return lines;
}

Result<std::int64_t> parse_integer(std::string_view what, std::string_view text, std::int64_t least,
                                   std::int64_t most) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is \"{}\"; allowed is a whole number from {} to {}{}", what, text,
                              least, most, kWrongValue));
  return value;
}

Result<std::optional<std::int64_t>> environment_integer(const char* name, std::int64_t least,
                                                        std::int64_t most) {
  auto text = environment(name);
  if (!text) return std::optional<std::int64_t>();
  MEMSPAN_TRY_ASSIGN(std::int64_t value, parse_integer(name, *text, least, most),
                     "reading the environment");
  return std::optional<std::int64_t>(value);
}

Result<Duration> parse_time(std::string_view what, std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit = text.substr(digits);
  const auto number = parse_integer(what, text.substr(0, digits), 0, 3'600'000'000);
  std::optional<Duration> time;
  if (number.is_ok() && unit == "us") time = std::chrono::microseconds(*number);
  if (number.is_ok() && unit == "ms") time = std::chrono::milliseconds(*number);
  if (number.is_ok() && unit == "s") time = std::chrono::seconds(*number);
  if (time && *time <= std::chrono::hours(1)) return *time;
  return Status(Code::kInvalidArgument,
                fmt::format("{} is \"{}\"; allowed is a whole number with us, ms or s, such as "
                            "500ms, up to an hour{}",
                            what, text, kWrongValue));
}

Result<std::size_t> parse_size(std::string_view what, std::string_view text) {
  Status invalid(Code::kInvalidArgument,
                 fmt::format("{} is \"{}\"; allowed is a positive number with an optional suffix "
                             "k, m, g or t, such as 512m or 1.5g{}",
                             what, text, kWrongValue));
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number > 0)) return invalid;
  const auto suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  if (!suffix.empty()) {
    if (!is_unit(suffix.substr(1))) return invalid;
    const std::size_t power = std::string_view("kmgt").find(suffix.front() | 0x20);
    if (power == std::string_view::npos) return invalid;
    number = std::ldexp(number, 10 * (static_cast<int>(power) + 1));
  }
  number = std::ceil(number);
  if (!(number < 0x1p62)) return invalid;
  return static_cast<std::size_t>(number);
}

std::string format_size(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", value, value == std::floor(value) ? 0 : 2, kUnits[unit]);
}

std::string first_line_of(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

std::string host_name() {
  char name[256] = "?";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace memspan::inline core
