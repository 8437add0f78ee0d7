// SPDX-License-Identifier: Apache-2.0
#include "store/headroom.h"

#include <sys/mman.h>

namespace memspan {
namespace {

constexpr std::size_t kMost = std::size_t{4} << 20;
constexpr std::size_t kLeast = std::size_t{256} << 10;
constexpr std::size_t kSpare = std::size_t{16} << 20;

// Never touched, so the pages cost only addresses, which is what a limit counts. Null on failure.
void* map_pages(std::size_t bytes) {
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

}  // namespace

void Headroom::hold() {
  for (std::size_t bytes = kMost; held_ == 0 && bytes >= kLeast; bytes /= 2) {
    pages_ = map_pages(bytes);
    if (pages_ != nullptr) held_ = bytes;
  }
}

void Headroom::free() {
  if (held_ != 0) ::munmap(pages_, held_);
  held_ = 0;
}

bool Headroom::free_for(std::size_t bytes) {
  if (bytes <= seen_) {
    seen_ -= bytes;
    return true;
  }
  seen_ = 0;
  if (is_there(bytes + kMost)) {
    seen_ = kMost;
    return true;
  }
  if (bytes > held_ / 2) return false;
  free();
  return true;
}

bool Headroom::is_there(std::size_t bytes) {
  void* const pages = map_pages(bytes + kSpare);
  if (pages == nullptr) return false;
  ::munmap(pages, bytes + kSpare);
  return true;
}

}  // namespace memspan
