// SPDX-License-Identifier: Apache-2.0
// Memory that a store holds while it does nothing, so that what a request changes is changed whole:
// it is free while a request is served that finds no other, and while a session ends for which
// there was no memory.
//
//   held   4 MiB, or as much as there is    small requests use it, so they go on to the last
//   spare  16 MiB beyond what is asked for  large ones leave it, so they fail first
//
// Looking whether memory is there costs two system calls, so what was seen is good for many small
// requests, far fewer than use up the spare.
// The kernel's own pages and not the allocator's, which could not put a hole together again.
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
  // There is memory for a request that takes `bytes`, after free() when that is what it takes; else
  // false.
  bool free_for(std::size_t bytes);
  // Whether `bytes` could be had, and the spare stays.
  static bool is_there(std::size_t bytes);

 private:
  void* pages_ = nullptr;
  std::size_t held_ = 0;
  std::size_t seen_ = 0;  // bytes that were there, and that nobody was let use since
};

}  // namespace memspan
