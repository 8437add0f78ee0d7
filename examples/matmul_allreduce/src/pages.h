// SPDX-License-Identifier: Apache-2.0
// Private memory for matrices and panels, straight from the kernel: zero, on page boundaries, and
// an allocation that fails is empty instead of an exception.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace matmul {

// Move-only value.
class Pages {
 public:
  Pages() = default;
  explicit Pages(std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    start_ = start == MAP_FAILED ? nullptr : start;
    // Large pages spare the products most of their TLB misses; a refusal changes nothing.
    if (start_ != nullptr) madvise(start_, bytes, MADV_HUGEPAGE);
  }
  Pages(Pages&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Pages() {
    if (start_ != nullptr) munmap(start_, bytes_);
  }

  bool is_valid() const { return start_ != nullptr || bytes_ == 0; }
  void* data() const { return start_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(start_);
  }

 private:
  void* start_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace matmul
