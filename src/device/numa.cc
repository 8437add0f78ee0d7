// SPDX-License-Identifier: Apache-2.0
#include "device/numa.h"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

namespace memspan {
namespace {

Status no_such_node(int node) {
  return {Code::kInvalidArgument, fmt::format("this machine has no NUMA node {}", node)};
}

}  // namespace

int current_node() {
  unsigned node = 0;
  return syscall(SYS_getcpu, nullptr, &node, nullptr) == 0 ? static_cast<int>(node) : 0;
}

Status prefer_node(void* base, std::size_t bytes, int node) {
  constexpr std::size_t kNodes = 1024;
  constexpr std::size_t kBits = sizeof(unsigned long) * CHAR_BIT;
  if (node < 0 || static_cast<std::size_t>(node) >= kNodes) return no_such_node(node);
  std::array<unsigned long, kNodes / kBits> mask{};
  mask[static_cast<std::size_t>(node) / kBits] = 1UL << static_cast<std::size_t>(node) % kBits;
  if (syscall(SYS_mbind, base, bytes, MPOL_PREFERRED, mask.data(), kNodes, 0) == 0)
    return Status::ok();
  if (errno == EINVAL) return no_such_node(node);
  if (errno == ENOSYS || errno == EPERM)
    return {Code::kNotSupported, "this system does not let a process choose a NUMA node"};
  return Status::from_errno(fmt::format("preferring NUMA node {}", node));
}

}  // namespace memspan
