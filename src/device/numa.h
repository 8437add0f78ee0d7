// SPDX-License-Identifier: Apache-2.0
// Chooses the NUMA node that memory comes from.
#pragma once

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <climits>
#include <cstring>

#include "core/environment.h"

namespace memspan::inline device {

inline Status no_such_node(int node) {
  return {Code::kInvalidArgument, fmt::format("this machine has no NUMA node {}", node)};
}

struct OnlineNodes {
  int count = 0;
  bool has_node = false;
};

// "0-1,4": three nodes. A kernel without this list has node 0.
inline OnlineNodes read_online(std::string_view text, int node) {
  OnlineNodes nodes;
  for (const std::string_view part : split(text, ',')) {
    const char* const end = part.data() + part.size();
    int first = 0;
    const auto [rest, error] = std::from_chars(part.data(), end, first);
    if (error != std::errc()) break;
    int last = first;
    if (rest < end && *rest == '-') std::from_chars(rest + 1, end, last);
    nodes.count += last - first + 1;
    nodes.has_node = nodes.has_node || (first <= node && node <= last);
  }
  return nodes.count > 0 ? nodes : OnlineNodes{1, node == 0};
}

// The result after mbind failed with EPERM or ENOSYS; `online` is the kernel's list ("0-1,4").
inline Status without_mbind(int node, std::string_view online, int error) {
  const OnlineNodes nodes = read_online(online, node);
  if (!nodes.has_node) return no_such_node(node);
  if (nodes.count == 1) return Status::ok();
  return {Code::kNotSupported,
          fmt::format("NUMA node {} cannot be chosen, and its memory comes from any node: the "
                      "system refuses mbind ({}). In a container, add the capability SYS_NICE or "
                      "use a seccomp profile that allows mbind",
                      node, std::strerror(error))};
}

// The node on which the calling thread runs now; 0 on a machine without nodes.
inline int current_node() {
  unsigned node = 0;
  return syscall(SYS_getcpu, nullptr, &node, nullptr) == 0 ? static_cast<int>(node) : 0;
}

// Takes missing pages of the mapped range from `node`. kInvalidArgument if this machine has no such
// node. kNotSupported if the system refuses mbind on a machine with several nodes: the pages then
// come from any node. With one node nothing depends on mbind.
inline Status prefer_node(void* base, std::size_t bytes, int node) {
  constexpr std::size_t kNodes = 1024;
  constexpr std::size_t kBits = sizeof(unsigned long) * CHAR_BIT;
  if (node < 0 || static_cast<std::size_t>(node) >= kNodes) return no_such_node(node);
  std::array<unsigned long, kNodes / kBits> mask{};
  mask[static_cast<std::size_t>(node) / kBits] = 1UL << static_cast<std::size_t>(node) % kBits;
  if (syscall(SYS_mbind, base, bytes, MPOL_PREFERRED, mask.data(), kNodes, 0) == 0)
    return Status::ok();
  if (errno == EINVAL) return no_such_node(node);
  if (errno != ENOSYS && errno != EPERM)
    return Status::from_errno(fmt::format("preferring NUMA node {}", node));
  const int error = errno;
  return without_mbind(node, first_line_of("/sys/devices/system/node/online"), error);
}

}  // namespace memspan::inline device
