// SPDX-License-Identifier: Apache-2.0
// The mappings of this process, as the kernel reports them in /proc/self/maps.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "core/status.h"

namespace memspan::inline device {

// One mapping. A value.
struct ProcessMapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string access;  // "rw-p"
  std::uint64_t offset = 0;
  dev_t device = 0;
  ino_t inode = 0;   // 0: anonymous
  std::string name;  // a path, "[heap]", or empty

  bool is_shared() const { return access[3] == 's'; }
  // "[0x1000, 0x2000) rw-p /path"
  std::string to_string() const;
};

// Calls `look` for each mapping that overlaps [begin, end), by address, until it returns false.
// Reads the list once; other threads may change it during the call. Thread-safe.
Status look_at_mappings(std::uint64_t begin, std::uint64_t end,
                        const std::function<bool(const ProcessMapping&)>& look);

// Whether some of [begin, end) is locked in memory (mlock). Only reads a small file if the process
// has locked nothing; otherwise the kernel looks at every page of the process.
Result<bool> has_locked_memory(std::uint64_t begin, std::uint64_t end);

}  // namespace memspan::inline device
