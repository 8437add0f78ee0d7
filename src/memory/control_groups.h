// SPDX-License-Identifier: Apache-2.0
// Which control groups a process is in: every one from its own up to the root of the mounted
// hierarchy may set a limit, and the lowest counts.
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

// Those of a controller ("memory", "cpu"), the own one first, of the text of /proc/self/cgroup.
// Where a container has its own group mounted at the root, some folders are not there.
std::vector<ControlGroup> control_groups(std::string_view self_cgroup, std::string_view controller);

}  // namespace memspan
