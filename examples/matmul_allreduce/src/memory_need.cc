// SPDX-License-Identifier: Apache-2.0
#include "memory_need.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string_view>

#include "verify.h"

namespace matmul {
namespace {

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;
// A process with the library and two BLAS libraries, packing buffers included: 14 MiB measured.
constexpr std::uint64_t kProcessBytes = 24 * kMebi;
// Alignment of the allocations, and small tables.
constexpr std::uint64_t kHeapSlack = 8 * kMebi;
constexpr std::uint64_t kMost = std::uint64_t{1} << 62;

// Numbers that remember whether any step left the range.
struct Checked {
  std::uint64_t value = 0;
  bool ok = true;
  friend Checked operator*(Checked a, std::uint64_t b) {
    Checked result;
    result.ok = a.ok && !__builtin_mul_overflow(a.value, b, &result.value) && result.value < kMost;
    return result;
  }
  friend Checked operator+(Checked a, Checked b) {
    Checked result;
    result.ok = a.ok && b.ok && !__builtin_add_overflow(a.value, b.value, &result.value) &&
                result.value < kMost;
    return result;
  }
};

std::optional<std::uint64_t> first_number(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // not there, or "max"
}

// The number after `key` in a file of "key number" lines; 0 when there is none.
std::uint64_t number_named(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    std::uint64_t number = 0;
    if (word == key && file >> number) return number;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

struct ControlGroupFiles {
  const char* root;
  const char* limit;
  const char* usage;
};

// What the group at `path` and all above it leave, file cache counted as free.
std::uint64_t control_group_left(const ControlGroupFiles& files, std::string path) {
  std::uint64_t left = kMost;
  for (;;) {
    std::string folder = files.root + path;
    auto limit = first_number(folder + "/" + files.limit);
    auto usage = first_number(folder + "/" + files.usage);
    if (limit && usage) {
      std::uint64_t cache = number_named(folder + "/memory.stat", "inactive_file");
      std::uint64_t used = *usage - std::min(*usage, cache);
      left = std::min(left, *limit - std::min(*limit, used));
    }
    std::size_t slash = path.find_last_of('/');
    if (path.empty() || slash == std::string::npos) return left;
    path.resize(slash);
  }
}

std::uint64_t control_groups_left() {
  constexpr ControlGroupFiles kUnified{"/sys/fs/cgroup", "memory.max", "memory.current"};
  constexpr ControlGroupFiles kMemory{"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                      "memory.usage_in_bytes"};
  std::uint64_t left = kMost;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    std::size_t first = line.find(':');
    std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (controllers.empty()) left = std::min(left, control_group_left(kUnified, path));
    if (controllers == "memory") left = std::min(left, control_group_left(kMemory, path));
  }
  return left;
}

std::optional<std::uint64_t> user_limit() {
  const char* text = std::getenv("MEMSPAN_MEMORY_LIMIT");
  return text == nullptr ? std::nullopt : parse_size(text);
}

}  // namespace

std::uint64_t MemoryNeed::heap() const {
  return 2 * result + workspace + signals + kHeapSlack;
}

std::optional<MemoryNeed> memory_need(const Shape& shape, const Multiplier& by, std::uint64_t ranks,
                                      std::uint64_t blocks) {
  std::uint64_t bytes = element_bytes(by.type);
  Checked matrices = (Checked{shape.m} * shape.k + Checked{shape.k} * shape.n) * bytes;
  Checked elements = Checked{shape.m} * shape.n;
  // The plans below multiply without a check: what passes here is far below their range.
  if (!(matrices + elements * (2 * bytes + kPartialBytes)).ok) return std::nullopt;

  TilePlan tiles(shape, ranks);
  PanelPlan panels(shape, by, tiles);
  Checked staging = Checked{tiles.slots()} * tiles.slot_elements() * kPartialBytes;
  Checked partials = elements * kPartialBytes;
  MemoryNeed need;
  need.matrices = matrices.value;
  need.result = (elements.value * bytes + 63) / 64 * 64;
  need.workspace = std::max(staging.value, partials.value);
  need.signals = (tiles.tiles() + tiles.slots()) * sizeof(std::uint64_t);
  const std::uint64_t pass = panels.bytes() + 3 * tiles.slot_elements() * kPartialBytes;
  need.scratch = (1 + blocks) * pass + Reference::bytes(shape) + kProcessBytes;
  Checked total = Checked{need.matrices} + Checked{need.heap()} + Checked{need.scratch};
  need.total = total.value;
  if (!staging.ok || !(total * ranks).ok) return std::nullopt;
  return need;
}

MemoryLimit available_memory() {
  MemoryLimit limit{number_named("/proc/meminfo", "MemAvailable:") * 1024, "MemAvailable"};
  std::uint64_t groups = control_groups_left();
  if (groups < limit.bytes) limit = {groups, "a control group"};
  auto user = user_limit();
  if (user && *user < limit.bytes) limit = {*user, "MEMSPAN_MEMORY_LIMIT"};
  return limit;
}

std::uint64_t total_memory() {
  std::uint64_t total = number_named("/proc/meminfo", "MemTotal:") * 1024;
  return std::min(total, user_limit().value_or(total));
}

std::optional<std::uint64_t> parse_size(const char* text) {
  char* end = nullptr;
  double value = std::strtod(text, &end);
  if (end == text || !std::isfinite(value) || value < 0) return std::nullopt;
  if (*end != '\0') {
    constexpr std::string_view kSuffixes = "kmgt";  // powers of 1024
    std::size_t power =
        kSuffixes.find(static_cast<char>(std::tolower(static_cast<unsigned char>(*end))));
    if (power == std::string_view::npos) return std::nullopt;
    value = std::ldexp(value, 10 * static_cast<int>(power + 1));
  }
  if (value >= static_cast<double>(kMost)) return std::nullopt;
  return static_cast<std::uint64_t>(std::ceil(value));
}

std::string format_size(std::uint64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text.data();
}

}  // namespace matmul
