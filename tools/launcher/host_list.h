// SPDX-License-Identifier: Apache-2.0
// Lists of hosts, as other launchers take them: "a:2,b:2", or a file with a host a line.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"

namespace memspan::launcher {

// A value.
struct HostSlots {
  std::string name;  // as it was typed, also "user@host"; no blank, comma or word of an option
  int slots = 1;     // the most processes that it gets
};

using HostList = std::vector<HostSlots>;

// "localhost,node1:4": names with or without a number of slots. `option` is for the message.
Result<HostList> parse_host_list(const std::string& option, const std::string& list);
// One host a line, as "node1", "node1:4" or "node1 slots=4"; "#" begins a comment.
Result<HostList> read_host_file(const std::string& option, const std::string& path);

// Whether it names the host that we are on.
bool is_this_host(const std::string& name);

// How many of `processes` each host gets: the first are filled first, the last ones may get none.
// kInvalidArgument when there are too few slots, or a host is listed twice.
Result<std::vector<int>> place(const HostList& hosts, int processes);

}  // namespace memspan::launcher
