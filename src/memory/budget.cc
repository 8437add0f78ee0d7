// SPDX-License-Identifier: Apache-2.0
#include "memory/budget.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>

#include <chrono>
#include <fstream>
#include <limits>
#include <thread>

#include "core/clock.h"
#include "core/environment.h"
#include "device/host/copy.h"
#include "memory/claim.h"

namespace memspan::inline memory {

MEMSPAN_REMEDY(kOutOfMemory, "out-of-memory",
               "The host or the limit that the message names has too little memory left.",
               "Allocate less, run fewer processes on the host, or raise that limit.");

namespace {

// Left for the rest of the machine: page tables, sockets, other programs' growth.
constexpr std::uint64_t kReserve = std::uint64_t{64} << 20;

std::string read_text(const std::string& path) {
  std::filebuf file;  // a stream would end the text at std::bad_alloc
  std::string text;
  if (file.open(path, std::ios::in) == nullptr) return text;
  char part[4096];
  while (const std::streamsize bytes = file.sgetn(part, sizeof part))
    text.append(part, static_cast<std::size_t>(bytes));
  return text;
}

// "MemAvailable:   24001234 kB" -> bytes.
std::optional<std::uint64_t> meminfo_field(const std::string& text, const std::string& field) {
  std::size_t at = text.find(field + ":");
  if (at == std::string::npos) return std::nullopt;
  return std::strtoull(text.c_str() + at + field.size() + 1, nullptr, 10) * 1024;
}

// nullopt for "max", for a missing file and for v1's "no limit" number.
std::optional<std::uint64_t> group_number(const std::string& path) {
  std::string text = read_text(path);
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  std::uint64_t value = std::strtoull(text.c_str(), nullptr, 10);
  if (value >= (std::uint64_t{1} << 62)) return std::nullopt;
  return value;
}

constexpr std::string_view kRoot = "/sys/fs/cgroup";

void add_with_parents(std::vector<ControlGroup>& groups, bool is_v1, const std::string& root,
                      std::string_view path) {
  if (path == "/") path = {};
  while (true) {
    groups.push_back({.is_v1 = is_v1, .folder = root + std::string(path)});
    if (path.empty()) return;
    path = path.substr(0, path.rfind('/'));
  }
}

// "cpu,cpuacct" has "cpu".
bool has_name(std::string_view names, std::string_view name) {
  const auto all = split(names, ',');
  return std::find(all.begin(), all.end(), name) != all.end();
}

// A limit of this process's memory: of the host, or of a control group. A value.
struct Limit {
  std::string file;  // on which processes claim
  std::string source;
  std::uint64_t total;
  std::uint64_t available;
};

// Some sandboxes hide /proc/meminfo. sysinfo() does not count caches as available.
Limit limit_of_host() {
  const std::string file = "/proc/meminfo", meminfo = read_text(file);
  const auto total = meminfo_field(meminfo, "MemTotal");
  const auto available = meminfo_field(meminfo, "MemAvailable");
  if (total && available) return {file, "MemAvailable", *total, *available};
  struct sysinfo info {};
  static_cast<void>(sysinfo(&info));  // fails only for a bad address
  return {file, "free memory", info.totalram * info.mem_unit,
          (info.freeram + info.bufferram) * info.mem_unit};
}

std::vector<Limit> limits() {
  std::vector<Limit> all = {limit_of_host()};
  for (const ControlGroup& group : control_groups(read_text("/proc/self/cgroup"), "memory")) {
    const std::string file =
        group.folder + (group.is_v1 ? "/memory.limit_in_bytes" : "/memory.max");
    const auto total = group_number(file);
    const auto used =
        group_number(group.folder + (group.is_v1 ? "/memory.usage_in_bytes" : "/memory.current"));
    if (total && used) all.push_back({file, file, *total, *total - std::min(*total, *used)});
  }
  for (Limit& limit : all) limit.available -= std::min(limit.available, kReserve);
  return all;
}

void lower(MemoryBudget& budget, std::uint64_t total, std::uint64_t available,
           const std::string& source) {
  budget.total = std::min(budget.total, total);
  if (available >= budget.available) return;
  budget.available = available;
  budget.source = source;
}

Status refusal(const MemoryBudget& budget, std::uint64_t bytes, std::string_view what) {
  const std::string of_others =
      budget.available < bytes
          ? ""
          : fmt::format("; with what other processes were promised or take now, {} is missing",
                        format_size(budget.missing));
  return {Code::kOutOfMemory,
          fmt::format("{} needs {} ({} bytes), but only {} ({} bytes) may still be taken ({}){}{}",
                      what, format_size(bytes), bytes, format_size(budget.available),
                      budget.available, budget.source, of_others, kOutOfMemory)};
}

// Waits while the claims are more than what is available. Promises that are needless, as their
// memory was touched in another order, are taken within a second and then not claimed any more.
// Bytes just taken are still claimed for a moment, so it waits as long as claims sink.
Status await_claims(std::uint64_t bytes, std::string_view what) {
  constexpr Duration kPatience = std::chrono::seconds(2);
  constexpr Duration kPause = std::chrono::milliseconds(5);
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  Deadline limit = Deadline::after(kPatience);
  while (true) {
    MEMSPAN_TRY_ASSIGN(const MemoryBudget budget, measure_memory_budget(), what);
    if (budget.available >= bytes && budget.missing == 0) return Status::ok();
    if (budget.claimed < least) {
      least = budget.claimed;
      limit = Deadline::after(kPatience);
    }
    if (budget.available < bytes || limit.has_passed()) return refusal(budget, bytes, what);
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view self_cgroup,
                                         std::string_view controller) {
  std::vector<ControlGroup> groups;
  for (const std::string_view line : split(self_cgroup, '\n')) {
    // "0::/a/b" of version 2, "4:cpu,cpuacct:/a/b" of version 1.
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', std::min(first, line.size() - 1) + 1);
    if (second == std::string_view::npos || line.substr(second + 1, 1) != "/") continue;
    const std::string_view names = line.substr(first + 1, second - first - 1);
    if (line.starts_with("0::"))
      add_with_parents(groups, false, std::string(kRoot), line.substr(second + 1));
    else if (has_name(names, controller))
      add_with_parents(groups, true, std::string(kRoot) + "/" + std::string(controller),
                       line.substr(second + 1));
  }
  return groups;
}

std::vector<std::string> memory_limit_files() {
  std::vector<std::string> files;
  for (Limit& limit : limits()) files.push_back(std::move(limit.file));
  return files;
}

Result<MemoryBudget> measure_memory_budget() {
  MemoryBudget budget;
  budget.total = budget.available = std::numeric_limits<std::uint64_t>::max();
  for (const Limit& limit : limits()) {
    lower(budget, limit.total, limit.available, limit.source);
    const std::uint64_t claimed = claimed_on(limit.file);
    budget.claimed = std::max(budget.claimed, claimed);
    budget.missing = std::max(budget.missing, claimed - std::min(claimed, limit.available));
  }
  if (auto text = environment("MEMSPAN_MEMORY_LIMIT")) {
    MEMSPAN_TRY_ASSIGN(std::size_t limit, parse_size("MEMSPAN_MEMORY_LIMIT", *text),
                       "measuring memory");
    lower(budget, limit, limit, "MEMSPAN_MEMORY_LIMIT");
  }
  return budget;
}

Status commit_within_budget(const MappedPart& part, std::string_view what) {
  MEMSPAN_TRY(check_copy_setting(), what);  // all of this memory is copied
  Claim claim(part.bytes);
  MEMSPAN_PASS(await_claims(part.bytes, what));
  return commit_mapped(
      part,
      [&](std::size_t bytes) -> Status {
        MEMSPAN_TRY_ASSIGN(const MemoryBudget budget, measure_memory_budget(), what);
        if (budget.available >= bytes) return Status::ok();
        return refusal(budget, claim.bytes(), what);
      },
      [&](std::size_t bytes) { claim.subtract(bytes); });
}

}  // namespace memspan::inline memory
