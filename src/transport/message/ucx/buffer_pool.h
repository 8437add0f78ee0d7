// SPDX-License-Identifier: Apache-2.0
// Buffers of two sizes for bytes that must stay until UCX has sent or received them. They are
// reused, so that a network registers them once.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "transport/message/ucx/chunk.h"

namespace memspan::ucx {

// One thread at a time. Outlives its buffers.
class BufferPool {
 public:
  struct Buffer {
    BufferPool& owner;
    const std::size_t room;
    std::unique_ptr<std::byte[]> bytes;
    void give_back() { owner.give_back(this); }
  };

  // For a chunk with its payload. The caller gives it back.
  Buffer* take(std::size_t bytes);
  // Buffers taken and not given back.
  std::size_t in_use() const { return in_use_; }

 private:
  static constexpr std::size_t kSmall = 4 << 10;
  static constexpr std::size_t kLarge = kMostInChunk + kChunkBytes;
  static constexpr std::size_t kMostSmall = 64;
  static constexpr std::size_t kMostLarge = 16;

  void give_back(Buffer* buffer);

  std::size_t in_use_ = 0;
  std::vector<std::unique_ptr<Buffer>> small_;
  std::vector<std::unique_ptr<Buffer>> large_;
};

}  // namespace memspan::ucx
