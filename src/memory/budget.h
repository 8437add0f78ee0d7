// SPDX-License-Identifier: Apache-2.0
// How much memory this host can still give. Ask before you commit any: a memfd has no limit of its
// own, and the kernel answers a shortage by killing processes, bystanders first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "device/mapped_commit.h"

namespace memspan::inline memory {

extern const char kOutOfMemory[];  // the end of messages of kOutOfMemory (core/status.h)

// A value: one reading.
struct MemoryBudget {
  std::uint64_t total = 0;      // memory of the host or of the tightest control group
  std::uint64_t available = 0;  // what may still be taken, less a reserve
  std::uint64_t claimed = 0;    // of the host or of a group, whichever is more (memory/claim.h)
  std::uint64_t missing = 0;    // so much more is claimed of one of them than is available
  std::string source;           // what set the bound: "MemAvailable", a cgroup, a variable
};

// Reads /proc/meminfo and memory.max - memory.current of every ancestor control group (v2, and v1
// if it is mounted). MEMSPAN_MEMORY_LIMIT, a size, lowers both figures (for tests and for users who
// want a bound). Takes about 100 microseconds; thread-safe.
Result<MemoryBudget> measure_memory_budget();

// The files that limit this process's memory: of the host, and of the control groups with a limit.
std::vector<std::string> memory_limit_files();

// The control groups of a process. Every group from its own up to the root of the mounted hierarchy
// may set a limit, and the lowest counts.
// A value.
struct ControlGroup {
  bool is_v1 = false;
  std::string folder;  // "/sys/fs/cgroup/system.slice"
};

// The groups of a controller ("memory", "cpu") in the text of /proc/self/cgroup, the own one first.
// Some folders do not exist if a container has its own group mounted at the root.
std::vector<ControlGroup> control_groups(std::string_view self_cgroup, std::string_view controller);

// Takes the memory behind a mapping (device/mapped_commit.h), which it claims first. So processes
// that do this at the same time do not take too much together, nor what others were promised; those
// that were promised more than they still need have two seconds to notice. Asks the budget again
// before every piece, as other programs claim nothing. kOutOfMemory names both sizes; `what` names
// the memory. Memory taken by then is released with the pages.
Status commit_within_budget(const MappedPart& part, std::string_view what);

}  // namespace memspan::inline memory
