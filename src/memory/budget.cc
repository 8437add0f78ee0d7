// SPDX-License-Identifier: Apache-2.0
#include "memory/budget.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>

#include <atomic>
#include <fstream>

#include "core/environment.h"
#include "device/host/copy.h"

namespace memspan {

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

void lower(MemoryBudget& budget, std::uint64_t total, std::uint64_t available, std::string source) {
  budget.total = std::min(budget.total, total);
  if (available < budget.available) {
    budget.available = available;
    budget.source = std::move(source);
  }
}

void apply_control_groups(MemoryBudget& budget) {
  for (const ControlGroup& group : control_groups(read_text("/proc/self/cgroup"), "memory")) {
    const std::string limit_file =
        group.folder + (group.is_v1 ? "/memory.limit_in_bytes" : "/memory.max");
    const auto limit = group_number(limit_file);
    const auto usage =
        group_number(group.folder + (group.is_v1 ? "/memory.usage_in_bytes" : "/memory.current"));
    if (limit && usage) lower(budget, *limit, *limit - std::min(*limit, *usage), limit_file);
  }
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

// Some sandboxes hide /proc/meminfo. sysinfo() does not count caches as available.
Result<MemoryBudget> budget_of_host() {
  const std::string meminfo = read_text("/proc/meminfo");
  const auto total = meminfo_field(meminfo, "MemTotal");
  const auto available = meminfo_field(meminfo, "MemAvailable");
  if (total && available) return MemoryBudget{*total, *available, "MemAvailable"};
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return Status::from_errno("sysinfo");
  return MemoryBudget{info.totalram * info.mem_unit,
                      (info.freeram + info.bufferram) * info.mem_unit, "free memory"};
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

Result<MemoryBudget> measure_memory_budget() {
  MEMSPAN_TRY_ASSIGN(MemoryBudget budget, budget_of_host(), "measuring memory");
  apply_control_groups(budget);
  budget.available -= std::min(budget.available, kReserve);
  if (auto text = environment("MEMSPAN_MEMORY_LIMIT")) {
    MEMSPAN_TRY_ASSIGN(std::size_t limit, parse_size("MEMSPAN_MEMORY_LIMIT", *text),
                       "measuring memory");
    lower(budget, limit, limit, "MEMSPAN_MEMORY_LIMIT");
  }
  return budget;
}

Status commit_within_budget(const MappedPart& part, std::string_view what) {
  MEMSPAN_TRY(check_copy_setting(), what);  // all of this memory is copied
  // The first piece asks for the whole part.
  std::atomic<std::size_t> taken{0};
  return commit_mapped(part, [&](std::size_t bytes) -> Status {
    const std::size_t before = taken.fetch_add(bytes, std::memory_order_relaxed);
    MEMSPAN_TRY_ASSIGN(MemoryBudget budget, measure_memory_budget(), what);
    const std::size_t rest = part.bytes - before;
    if (budget.available >= (before == 0 ? rest : bytes)) return Status::ok();
    return {Code::kOutOfMemory,
            fmt::format("{} needs {} ({} bytes), but only {} ({} bytes) may still be taken ({}){}",
                        what, format_size(rest), rest, format_size(budget.available),
                        budget.available, budget.source, kOutOfMemory)};
  });
}

}  // namespace memspan
