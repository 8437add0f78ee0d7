// SPDX-License-Identifier: Apache-2.0
#include "memory/control_groups.h"

#include <algorithm>

#include "core/environment.h"

namespace memspan {
namespace {

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

}  // namespace memspan
