// SPDX-License-Identifier: Apache-2.0
// What a process may have (ulimit), next to what memspan's processes need.
#include <fmt/format.h>

#include "core/environment.h"
#include "info/gather.h"

namespace memspan::info {
namespace {

// A PE on one host has about 20 open; a connection to a peer on another host is one more. oshrun
// needs 128 and one for each process, and raises its own limit as far as the hard one lets it.
constexpr std::uint64_t kFewestDescriptors = 64;
constexpr std::uint64_t kFewestOfLauncher = 256;
constexpr std::uint64_t kGoodDescriptors = 1024;
constexpr std::uint64_t kFewestThreads = 64;

std::string count_text(std::uint64_t count) {
  return count == Limit::kUnlimited ? "unlimited" : std::to_string(count);
}

std::string size_text(std::uint64_t bytes) {
  return bytes == Limit::kUnlimited ? "unlimited" : format_size(bytes);
}

// Unlimited is null to programs.
json::Value limit_value(std::uint64_t limit) {
  return limit == Limit::kUnlimited ? json::Value() : json::Value(limit);
}

Finding descriptors(const SystemFiles& files) {
  const Limit limit = limit_of(files, "Max open files").value_or(Limit{});
  Finding finding{.group = "limits",
                  .key = "descriptors",
                  .text = fmt::format("{} open files, {} after ulimit -n", count_text(limit.soft),
                                      count_text(limit.hard)),
                  .value = limit_value(limit.soft)};
  if (limit.soft >= kGoodDescriptors) return finding;
  const bool can_be_raised = limit.hard >= kGoodDescriptors;
  const std::string remedy =
      can_be_raised ? fmt::format("ulimit -n {}", std::min(limit.hard, std::uint64_t{65536}))
                    : "docker run --ulimit nofile=65536, LimitNOFILE= of the service, or "
                      "/etc/security/limits.conf";
  const bool is_too_little = limit.soft < kFewestDescriptors || limit.hard < kFewestOfLauncher;
  return judged(
      std::move(finding), is_too_little ? Judgement::kProblem : Judgement::kNote,
      fmt::format("{} at least, and {} for oshrun; {} where a job has PEs on several hosts",
                  kFewestDescriptors, kFewestOfLauncher, kGoodDescriptors),
      remedy);
}

Finding file_bytes(const SystemFiles& files) {
  const Limit limit = limit_of(files, "Max file size").value_or(Limit{});
  Finding finding{.group = "limits",
                  .key = "file_bytes",
                  .text = size_text(limit.soft),
                  .value = limit_value(limit.soft)};
  if (limit.soft == Limit::kUnlimited) return finding;
  return judged(std::move(finding), Judgement::kProblem,
                "unlimited: shared memory is a file to the kernel, of all heaps of a host together",
                "ulimit -f unlimited");
}

Finding address_space(const SystemFiles& files) {
  const Limit limit = limit_of(files, "Max address space").value_or(Limit{});
  Finding finding{.group = "limits",
                  .key = "address_space",
                  .text = size_text(limit.soft),
                  .value = limit_value(limit.soft)};
  if (limit.soft == Limit::kUnlimited) return finding;
  return judged(std::move(finding), Judgement::kProblem,
                "unlimited: a process reserves the heaps of all PEs of its host",
                "ulimit -v unlimited");
}

Finding locked_memory(const SystemFiles& files) {
  const Limit limit = limit_of(files, "Max locked memory").value_or(Limit{});
  const bool has_rdma = files.has("/sys/class/infiniband");
  Finding finding{
      .group = "limits",
      .key = "locked_memory",
      .text = fmt::format("{} locked; {}", size_text(limit.soft),
                          has_rdma ? "RDMA locks what it moves" : "nothing is locked without RDMA"),
      .value = limit_value(limit.soft)};
  if (!has_rdma || limit.soft == Limit::kUnlimited) return finding;
  return judged(
      std::move(finding),
      environment_or("MEMSPAN_CARRIER", "") == "ucx" ? Judgement::kProblem : Judgement::kNote,
      "unlimited where the carrier ucx uses RDMA", "ulimit -l unlimited");
}

Finding threads(const SystemFiles& files) {
  const Limit limit = limit_of(files, "Max processes").value_or(Limit{});
  Finding finding{.group = "limits",
                  .key = "processes",
                  .text = count_text(limit.soft) + " processes and threads of this user",
                  .value = limit_value(limit.soft)};
  if (limit.soft >= kFewestThreads) return finding;
  return judged(
      std::move(finding), Judgement::kProblem,
      fmt::format("{} at least: each PE has a thread or two beside its own", kFewestThreads),
      "ulimit -u 4096");
}

}  // namespace

Findings gather_limits(const SystemFiles& files) {
  return {descriptors(files), file_bytes(files), address_space(files), locked_memory(files),
          threads(files)};
}

}  // namespace memspan::info
