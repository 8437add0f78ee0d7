// SPDX-License-Identifier: Apache-2.0
#include "launcher/binding.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>

#include "core/cpu.h"
#include "core/fd.h"

namespace memspan::launcher {
namespace {

// The first hardware thread of the core that `cpu` belongs to; `cpu` itself if unknown.
int first_sibling(int cpu) {
  std::string path =
      fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu);
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[64] = {};
  if (!file.is_valid() || read(file.get(), text, sizeof text - 1) <= 0) return cpu;
  return std::atoi(text);  // NOLINT(cert-err34-c): because the kernel writes numbers here
}

std::vector<int> allowed_cores() {
  std::vector<int> cores;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // Fails on machines with more cores than cpu_set_t knows: then no process is bound.
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask)) cores.push_back(cpu);
  return cores;
}

// Sets the launcher's mask to what it is; some containers refuse even that.
Status try_to_bind() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return Status::ok();
  if (sched_setaffinity(0, sizeof mask, &mask) == 0) return Status::ok();
  return {Code::kUnavailable,
          fmt::format("--bind core: the system refuses sched_setaffinity ({}). Use --bind none, or "
                      "a seccomp profile that allows it",
                      std::strerror(errno))};
}

MEMSPAN_REMEDY(kTooFewCores, "too-few-cores",
               "--bind core binds each process to a core that no other process uses.",
               "Use --bind none, which shares the cores, or ask for fewer processes.");

}  // namespace

Result<std::vector<int>> choose_cores(Binding binding, int processes) {
  if (binding == Binding::kNone) return std::vector<int>();
  if (Status status = try_to_bind(); !status.is_ok()) {
    if (binding == Binding::kWhenItFits) return std::vector<int>();
    return status;
  }
  std::vector<int> allowed = allowed_cores();
  const auto wanted = static_cast<std::size_t>(processes);
  if (wanted > allowed.size()) {
    if (binding == Binding::kWhenItFits) return std::vector<int>();
    return Status(
        Code::kInvalidArgument,
        fmt::format("--bind core needs a core for each process, and there are {} processes on {} "
                    "cores{}",
                    processes, usable_cores(), kTooFewCores));
  }
  if (wanted == allowed.size()) return allowed;

  std::vector<int> chosen;
  std::vector<int> seconds;
  std::set<int> taken;
  for (int cpu : allowed) {
    if (chosen.size() == wanted) break;
    (taken.insert(first_sibling(cpu)).second ? chosen : seconds).push_back(cpu);
  }
  for (int cpu : seconds)
    if (chosen.size() < wanted) chosen.push_back(cpu);
  return chosen;
}

}  // namespace memspan::launcher
