// SPDX-License-Identifier: Apache-2.0
// Memory: what there is for heaps, huge pages, and what does not matter though people ask.
#include <fmt/format.h>
#include <sys/statvfs.h>

#include "capi/process_state.h"
#include "core/environment.h"
#include "device/mapped_commit.h"
#include "info/gather.h"
#include "memory/address_plan.h"
#include "memory/budget.h"
#include "world/world.h"

namespace memspan::info {
namespace {

constexpr std::uint64_t kDefaultMappings = 65530;  // the kernel's own default

Finding huge_page_finding(const SystemFiles& files) {
  constexpr std::string_view kFolder = "/sys/kernel/mm/transparent_hugepage/";
  const std::string all = files.line(std::string(kFolder) + "enabled");
  const std::string shared = files.line(std::string(kFolder) + "shmem_enabled");
  const HugePageWay way = huge_page_way(all, shared);
  Finding finding{.group = "memory", .key = "transparent_huge_pages"};
  const std::string words =
      fmt::format("enabled {}, shmem_enabled {}", all.empty() ? "not there" : bracketed(all),
                  shared.empty() ? "not there" : bracketed(shared));
  switch (way) {
    case HugePageWay::kAdvice:
      finding.text = fmt::format("used: at the first touch ({})", words);
      finding.value = "advice";
      return finding;
    case HugePageWay::kCollapse:
      finding.text = fmt::format("used: made of touched pages, from Linux 6.1 ({})", words);
      finding.value = "collapse";
      return finding;
    case HugePageWay::kNone:
      break;
  }
  finding.text = fmt::format("not used ({})", words);
  finding.value = "none";
  return judged(std::move(finding), Judgement::kNote,
                "huge pages of shared memory: a first use takes a fifth of the time",
                "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled");
}

Finding reserved_finding(const SystemFiles& files) {
  constexpr std::string_view kFolder = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  const auto free = files.number(std::string(kFolder) + "free_hugepages");
  const auto all = files.number(std::string(kFolder) + "nr_hugepages");
  return {.group = "memory",
          .key = "reserved_huge_pages",
          .text = fmt::format("{} of {} of 2 MiB free; pools take them first, none are needed",
                              free.value_or(0), all.value_or(0)),
          .value = free.value_or(0)};
}

Finding overcommit_finding(const SystemFiles& files) {
  const std::uint64_t mode = files.number("/proc/sys/vm/overcommit_memory").value_or(0);
  return {.group = "memory",
          .key = "overcommit",
          .text = fmt::format(
              "vm.overcommit_memory is {}; heaps are reserved without being counted", mode),
          .value = mode};
}

Finding mappings_finding(const SystemFiles& files) {
  const std::uint64_t most = files.number("/proc/sys/vm/max_map_count").value_or(kDefaultMappings);
  Finding finding{.group = "memory",
                  .key = "mappings",
                  .text = fmt::format("{} mappings of a process (vm.max_map_count)", most),
                  .value = most};
  if (most >= kDefaultMappings) return finding;
  return judged(
      std::move(finding), Judgement::kNote,
      fmt::format("{}, the kernel's default; each member of a pool takes some", kDefaultMappings),
      fmt::format("sysctl -w vm.max_map_count={}", kDefaultMappings));
}

Finding dev_shm_finding(const SystemFiles& files) {
  struct statvfs about = {};
  Finding finding{.group = "memory", .key = "dev_shm"};
  if (::statvfs(files.path("/dev/shm").c_str(), &about) != 0) {
    finding.text = "there is no /dev/shm; memspan does not use it";
    return finding;
  }
  const std::uint64_t size = std::uint64_t{about.f_blocks} * about.f_frsize;
  const std::uint64_t free = std::uint64_t{about.f_bavail} * about.f_frsize;
  finding.text =
      fmt::format("{} free of {}; memspan does not use it", format_size(free), format_size(size));
  finding.value = json::Value().set("bytes", size).set("free_bytes", free);
  return finding;
}

// Judges by all of memory: a start does not refuse a heap because less is free now.
Finding heap_finding(std::uint64_t memory_bytes) {
  Finding size{.group = "memory", .key = "heap"};
  const auto wanted = capi::heap_size_from_environment();
  if (!wanted.is_ok()) {
    size.text = wanted.status().message();
    return judged(std::move(size), Judgement::kProblem, "a size such as 512m or 4g",
                  "export SHMEM_SYMMETRIC_SIZE=1g");
  }
  const auto mode = commit_mode_from_environment();
  if (!mode.is_ok()) {
    size.text = mode.status().message();
    return judged(std::move(size), Judgement::kProblem, "promise, allocation or touch",
                  "unset MEMSPAN_COMMIT");
  }
  const std::uint64_t most = most_heap_bytes(memory_bytes, heap_file_stride(memory_bytes), *mode);
  // As a start rounds the one up, the other has to be rounded down.
  const std::uint64_t allowed = most / kHeapGranularity * kHeapGranularity;
  const std::size_t heap =
      wanted->is_default ? fitting_default(wanted->bytes, allowed) : wanted->bytes;
  size.text = fmt::format("{} a PE (SHMEM_SYMMETRIC_SIZE), reserved and taken by allocations",
                          format_size(heap));
  size.value = heap;
  if (heap <= allowed) return size;
  size.text = fmt::format("{} a PE (SHMEM_SYMMETRIC_SIZE), more than a start takes on this host",
                          format_size(heap));
  return judged(std::move(size), Judgement::kProblem,
                fmt::format("at most {} ({} bytes)", format_size(allowed), allowed),
                allowed == 0 ? "raise MEMSPAN_MEMORY_LIMIT, or the control group's limit"
                             : fmt::format("export SHMEM_SYMMETRIC_SIZE={}m", allowed >> 20));
}

}  // namespace

Findings gather_memory(const SystemFiles& files) {
  return {huge_page_finding(files), reserved_finding(files), overcommit_finding(files),
          mappings_finding(files), dev_shm_finding(files)};
}

Findings gather_budget() {
  Finding available{.group = "memory", .key = "available"};
  auto budget = measure_memory_budget();
  if (!budget.is_ok()) {
    available.text = budget.status().message();
    return {judged(std::move(available), Judgement::kProblem, "a size that can be measured",
                   "mount -t proc proc /proc, or unset MEMSPAN_MEMORY_LIMIT")};
  }
  available.text = fmt::format("{} available of {}, bounded by {}", format_size(budget->available),
                               format_size(budget->total), budget->source);
  available.value = json::Value()
                        .set("bytes", budget->available)
                        .set("total_bytes", budget->total)
                        .set("source", budget->source);
  // A start commits about this much of the library's own areas.
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;
  if (budget->available < kLeast)
    available = judged(std::move(available), Judgement::kProblem,
                       fmt::format("{} at least", format_size(kLeast)),
                       "raise " + budget->source + ", or end what uses the memory");
  return {std::move(available), heap_finding(budget->total)};
}

}  // namespace memspan::info
