// SPDX-License-Identifier: Apache-2.0
// The descriptors that a child of fork() must give up, readable without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

namespace memspan {

// Thread-safe.
class DescriptorBook {
 public:
  void add(int descriptor);
  void remove(int descriptor);
  // In a child: replaces them by /dev/null. So no peer mistakes the child for this process, and
  // their owners may still close them.
  void give_up_in_child();

 private:
  static constexpr std::size_t kEach = 256;
  struct Page {
    std::array<std::atomic<int>, kEach> numbers;  // -1: free
    std::atomic<Page*> next{nullptr};
    Page();
    ~Page() { delete next.load(); }
  };
  Page first_;
};

}  // namespace memspan
