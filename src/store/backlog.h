// SPDX-License-Identifier: Apache-2.0
// Frames that wait to be sent, and how many bytes they are in memory: a value that many of them
// share counts once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "store/wire.h"

namespace memspan {

// Counts one queue, or several together. One thread at a time.
class StoreBacklog {
 public:
  void add(const StoreFrame& frame) {
    bytes_ += head_bytes(frame);
    if (frame.value.empty()) return;
    if (++shared_[frame.value.identity()] == 1) bytes_ += frame.value.size();
  }
  // `frame` must have been added.
  void remove(const StoreFrame& frame) {
    bytes_ -= head_bytes(frame);
    const auto found = shared_.find(frame.value.identity());
    if (frame.value.empty() || found == shared_.end() || --found->second > 0) return;
    bytes_ -= frame.value.size();
    shared_.erase(found);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  static std::size_t head_bytes(const StoreFrame& frame) {
    return sizeof frame + frame.head.size();
  }
  std::size_t bytes_ = 0;
  std::unordered_map<const void*, std::uint32_t> shared_;  // frames that have that value
};

}  // namespace memspan
