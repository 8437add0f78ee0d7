// SPDX-License-Identifier: Apache-2.0
// Memory that an idle store holds, so that every request takes effect completely or not at all. The
// store frees it while it serves a request that finds no other memory, and while it ends a session.
//
//   held   4 MiB, or what is available  small requests may use it, so they fail last
//   spare  16 MiB beyond the request    large requests leave it, so they fail first
//
// A check for memory costs two system calls, so one result serves many small requests, far fewer
// than use up the spare. The pages come from the kernel: the allocator could not make a freed block
// whole again.
#pragma once

#include <cstddef>

namespace memspan {

// One thread at a time.
class Headroom {
 public:
  Headroom() { hold(); }
  ~Headroom() { free(); }
  Headroom(const Headroom&) = delete;
  Headroom& operator=(const Headroom&) = delete;

  // Holds as much as it can.
  void hold();
  void free();
  // Returns whether memory for a request of `bytes` is available. Frees the held memory if the
  // request needs it.
  bool free_for(std::size_t bytes);
  // Whether `bytes` are available beside the spare.
  static bool is_there(std::size_t bytes);

 private:
  void* pages_ = nullptr;
  std::size_t held_ = 0;
  std::size_t seen_ = 0;  // available bytes that no request has claimed since
};

}  // namespace memspan
