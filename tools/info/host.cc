// SPDX-License-Identifier: Apache-2.0
// The host: which one, its kernel, processor and cores.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>

#include "core/cpu.h"
#include "core/environment.h"
#include "info/gather.h"
#include "memory/budget.h"
#include "net/own_addresses.h"

namespace memspan::info {
namespace {

// Cores' worth of time that one control group gives ("200000 100000": two); 0: no bound.
double quota_of(const SystemFiles& files, const ControlGroup& group) {
  if (group.is_v1) {
    const auto quota = files.number(group.folder + "/cpu.cfs_quota_us");  // nullopt for -1
    const auto period = files.number(group.folder + "/cpu.cfs_period_us");
    if (!quota || period.value_or(0) == 0) return 0;
    return static_cast<double>(*quota) / static_cast<double>(*period);
  }
  long long quota = 0;
  long long period = 0;
  const std::string line = files.line(group.folder + "/cpu.max");
  // NOLINTNEXTLINE(cert-err34-c): because the count is checked
  if (std::sscanf(line.c_str(), "%lld %lld", &quota, &period) != 2 || period <= 0) return 0;
  return static_cast<double>(quota) / static_cast<double>(period);
}

// The lowest of all groups that the process is in; 0: no bound.
double core_quota(const SystemFiles& files) {
  double lowest = 0;
  for (const ControlGroup& group : control_groups(files.text("/proc/self/cgroup"), "cpu"))
    if (const double quota = quota_of(files, group); quota > 0 && (lowest == 0 || quota < lowest))
      lowest = quota;
  return lowest;
}

Finding quota_finding(double quota, int cores) {
  Finding finding{.group = "host",
                  .key = "core_quota",
                  .text = "none: the control group gives all of the cores' time"};
  if (quota <= 0) return finding;
  finding.text = fmt::format("{:.2f} cores' worth of time (control group)", quota);
  finding.value = quota;
  if (quota + 0.01 >= cores) return finding;
  return judged(std::move(finding), Judgement::kNote,
                fmt::format("{} cores, as many as the process may run on", cores),
                fmt::format("give the container --cpus={}, or start no more than {} PEs", cores,
                            static_cast<int>(quota) < 1 ? 1 : static_cast<int>(quota)));
}

}  // namespace

int numa_nodes(const SystemFiles& files) {
  int count = 0;
  while (files.has(fmt::format("/sys/devices/system/node/node{}", count))) ++count;
  return std::max(count, 1);
}

Findings gather_host(const SystemFiles& files) {
  utsname about = {};
  ::uname(&about);
  const int usable = usable_cores();
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  const int nodes = numa_nodes(files);
  Findings findings;
  findings.push_back({.group = "host", .key = "name", .text = host_name(), .value = host_name()});
  findings.push_back({.group = "host",
                      .key = "identity",
                      .text = Host::own().id + " (processes with the same one share memory)",
                      .value = Host::own().id});
  findings.push_back({.group = "host",
                      .key = "kernel",
                      .text = fmt::format("{} {} {}", about.sysname, about.release, about.machine),
                      .value = std::string(about.release)});
  const std::string model = processor_name(files);
  findings.push_back({.group = "host", .key = "processor", .text = model, .value = model});
  Finding cores{.group = "host",
                .key = "cores",
                .text = fmt::format("{} usable of {} online", usable, online),
                .value = usable};
  if (usable < online)
    cores = judged(std::move(cores), Judgement::kNote, "all that are online, unless it is meant so",
                   "taskset -c 0-" + std::to_string(online - 1) + " COMMAND");
  findings.push_back(std::move(cores));
  findings.push_back(quota_finding(core_quota(files), usable));
  findings.push_back(
      {.group = "host", .key = "numa_nodes", .text = std::to_string(nodes), .value = nodes});
  return findings;
}

}  // namespace memspan::info
