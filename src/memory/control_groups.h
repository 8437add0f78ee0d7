// SPDX-License-Identifier: Apache-2.0
// The control groups of a process. Every group from its own up to the root of the mounted hierarchy
// may set a limit, and the lowest counts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace memspan {

// A value.
struct ControlGroup {
  bool is_v1 = false;
  std::string folder;  // "/sys/fs/cgroup/system.slice"
};

// The groups of a controller ("memory", "cpu") in the text of /proc/self/cgroup, the own one first.
// Some folders do not exist if a container has its own group mounted at the root.
std::vector<ControlGroup> control_groups(std::string_view self_cgroup, std::string_view controller);

}  // namespace memspan
