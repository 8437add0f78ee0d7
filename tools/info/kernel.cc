// SPDX-License-Identifier: Apache-2.0
// System calls that memspan uses, each tried on this process or a child of it.
#include <fmt/format.h>
#include <linux/membarrier.h>
#include <linux/mempolicy.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/pages.h"
#include "device/in_place.h"
#include "info/gather.h"
#include "node/process.h"

namespace memspan::info {
namespace {

constexpr const char* kAllowInContainer =
    "docker run --cap-add SYS_PTRACE, or a seccomp profile that allows it";

Finding memfd_finding() {
  Finding finding{
      .group = "kernel", .key = "memfd", .text = "sealed memory can be made", .value = true};
  const auto pages = Pages::create(page_size(), "memspan-info");
  if (pages.is_ok()) return finding;
  finding.text = pages.status().message();
  finding.value = false;
  return judged(std::move(finding), Judgement::kProblem,
                "memfd_create with seals (Linux 3.17): heaps and pools are of it",
                "a newer kernel, or a seccomp profile that allows memfd_create");
}

// A child reads its parent's memory, as one PE does another's: only descendants may be reached
// under Yama unless they allow it, which memspan's processes do.
int error_of_reading_parent() {
  static volatile std::uint32_t word = 0x6d656d73;
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    std::uint32_t copy = 0;
    const iovec to{&copy, sizeof copy};
    const iovec from{const_cast<std::uint32_t*>(&word), sizeof word};
    const ssize_t moved = ::process_vm_readv(parent, &to, 1, &from, 1, 0);
    ::_exit(moved < 0 ? errno : copy == word ? 0 : EIO);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

Finding process_memory_finding() {
  Finding finding{.group = "kernel",
                  .key = "process_memory",
                  .text = "processes reach each other's memory (process_vm_readv)",
                  .value = true};
  const int error = error_of_reading_parent();
  if (error == 0) return finding;
  finding.text = fmt::format("process_vm_readv between two processes: {}", std::strerror(error));
  finding.value = false;
  return judged(
      std::move(finding), Judgement::kNote,
      "process_vm_readv; without it messages transfer memory that memspan did not allocate",
      error == ENOSYS ? "a kernel with CONFIG_CROSS_MEMORY_ATTACH" : kAllowInContainer);
}

Finding userfaultfd_finding() {
  Finding finding{.group = "kernel",
                  .key = "userfaultfd",
                  .text = "writers can be held off while their pages are replaced",
                  .value = true};
  const auto hold = WriteHold::make();
  if (hold.is_ok()) return finding;
  finding.text = hold.status().message();
  finding.value = false;
  return judged(std::move(finding), Judgement::kNote,
                "userfaultfd (Linux 5.19), for programs that let registered memory be shared in "
                "place",
                "a seccomp profile that allows userfaultfd, or a newer kernel");
}

Finding numa_finding(int nodes) {
  Finding finding{.group = "kernel",
                  .key = "numa_policy",
                  .text = "memory can be placed on a NUMA node",
                  .value = true};
  if (::syscall(SYS_mbind, nullptr, 0, MPOL_DEFAULT, nullptr, 0, 0) == 0) return finding;
  finding.text = fmt::format("mbind: {}", std::strerror(errno));
  finding.value = false;
  if (nodes == 1) {
    finding.text += "; this machine has one NUMA node, and nothing depends on it";
    return finding;
  }
  return judged(std::move(finding), Judgement::kNote,
                "mbind, for pools with a NUMA node; without it their memory comes from any node",
                "docker run --cap-add SYS_NICE, or a seccomp profile that allows mbind");
}

Finding membarrier_finding() {
  Finding finding{
      .group = "kernel", .key = "membarrier", .text = "sleepers are woken at once", .value = true};
  const long commands = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (commands >= 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0) return finding;
  finding.text = commands < 0 ? fmt::format("membarrier: {}", std::strerror(errno))
                              : "this kernel's membarrier has no global expedited fence";
  finding.value = false;
  return judged(std::move(finding), Judgement::kNote,
                "membarrier (Linux 4.16); without it a waiter that sleeps notices within 1 ms",
                "a seccomp profile that allows membarrier, or a newer kernel");
}

Finding pidfd_finding() {
  Finding finding{.group = "kernel",
                  .key = "pidfd",
                  .text = "the end of a process is seen at once",
                  .value = true};
  const auto opened = open_pidfd(::getpid());
  if (opened.is_ok()) return finding;
  finding.text = opened.status().message();
  finding.value = false;
  return judged(std::move(finding), Judgement::kNote,
                "pidfd_open (Linux 5.3); without it processes see each other's end by a pipe",
                "a newer kernel, or a seccomp profile that allows pidfd_open");
}

}  // namespace

Finding gather_ptrace_scope(const SystemFiles& files) {
  constexpr std::string_view kMeanings[] = {
      "any process of the user", "descendants, and processes that it allows, as memspan's do",
      "those with CAP_SYS_PTRACE", "none"};
  const auto scope = files.number("/proc/sys/kernel/yama/ptrace_scope");
  Finding finding{.group = "kernel",
                  .key = "ptrace_scope",
                  .text = "this kernel has no Yama: any process of the user may be reached"};
  if (!scope) return finding;
  finding.value = *scope;
  finding.text = fmt::format("kernel.yama.ptrace_scope is {}: {} may reach a process's memory",
                             *scope, kMeanings[std::min<std::uint64_t>(*scope, 3)]);
  if (*scope < 2) return finding;
  return judged(std::move(finding), Judgement::kNote, "0 or 1",
                *scope == 2 ? "sysctl -w kernel.yama.ptrace_scope=1"
                            : "3 cannot be lowered: set kernel.yama.ptrace_scope=1 in "
                              "/etc/sysctl.d and start the machine again");
}

Findings gather_kernel(const SystemFiles& files) {
  return {memfd_finding(),
          pidfd_finding(),
          gather_ptrace_scope(files),
          process_memory_finding(),
          userfaultfd_finding(),
          membarrier_finding(),
          numa_finding(numa_nodes(files))};
}

}  // namespace memspan::info
