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

#include <sys/mman.h>

#include "core/status.h"

namespace memspan::inline store {

// One thread at a time.
class Headroom : NotCopyable {
 public:
  Headroom() { hold(); }
  ~Headroom() { free(); }

  // Holds as much as it can.
  void hold() {
    for (std::size_t bytes = kMost; held_ == 0 && bytes >= kLeast; bytes /= 2) {
      pages_ = map_pages(bytes);
      if (pages_ != nullptr) held_ = bytes;
    }
  }
  void free() {
    if (held_ != 0) ::munmap(pages_, held_);
    held_ = 0;
  }
  // Returns whether memory for a request of `bytes` is available. Frees the held memory if the
  // request needs it.
  bool free_for(std::size_t bytes) {
    if (bytes <= seen_) {
      seen_ -= bytes;
      return true;
    }
    seen_ = is_there(bytes + kMost) ? kMost : 0;
    if (seen_ != 0) return true;
    if (bytes > held_ / 2) return false;
    free();
    return true;
  }
  // Whether `bytes` are available beside the spare.
  static bool is_there(std::size_t bytes) {
    void* const pages = map_pages(bytes + kSpare);
    if (pages == nullptr) return false;
    ::munmap(pages, bytes + kSpare);
    return true;
  }

 private:
  static constexpr std::size_t kMost = std::size_t{4} << 20;
  static constexpr std::size_t kLeast = std::size_t{256} << 10;
  static constexpr std::size_t kSpare = std::size_t{16} << 20;

  // Never touched, so the pages cost only addresses, which is what a limit counts. Null on failure.
  static void* map_pages(std::size_t bytes) {
    void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? nullptr : pages;
  }

  void* pages_ = nullptr;
  std::size_t held_ = 0;
  std::size_t seen_ = 0;  // available bytes that no request has claimed since
};

}  // namespace memspan::inline store
