// SPDX-License-Identifier: Apache-2.0
// Which host this is: two processes with the same string can share memory.
#pragma once

#include <string>
#include <string_view>

namespace memspan {

// A value: the host of a process, for its peers.
struct Host {
  std::string id;    // processes with the same one can share memory
  std::string name;  // for messages; other hosts may have the same one

  // Both are MEMSPAN_HOST_ID when that is set. Else kernel_identity(), and the host's name. In
  // another network namespace than the first process, the name ends in " at ADDRESS".
  static Host own();
  // As one text, and back.
  std::string encode() const { return id + '\n' + name; }
  static Host decode(std::string_view text);
  bool operator==(const Host& other) const { return id == other.id; }
};

// The kernel's boot id and the network namespace: processes with the same one reach each other's
// abstract Unix sockets, even if MEMSPAN_HOST_ID separates them.
std::string kernel_identity();

}  // namespace memspan
