// SPDX-License-Identifier: Apache-2.0
// Buffers of two sizes for bytes that must stay until UCX has sent or received them. They are
// reused, so that a network registers them once, and the last one first, because it is in the
// processor's caches.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace memspan::ucx {

class Channel;

// Bytes of a message: a batch of frames with their headers (connection.cc).
inline constexpr std::size_t kMostInMessage = std::size_t{257} << 10;
// Without RDMA a message is smaller. With all headers it fits into one segment of UCX's TCP, so UCX
// copies no parts of it together.
inline constexpr std::size_t kMostWithoutRdma = (std::size_t{64} << 10) - 256;

// One thread at a time. Outlives its buffers.
class BufferPool {
 public:
  struct Buffer {
    BufferPool& owner;
    const std::size_t room;
    std::unique_ptr<std::byte[]> bytes;
    Channel* channel = nullptr;  // that sends `data`
    std::span<const std::byte> data = {};
    void give_back() { owner.give_back(this); }
  };

  // For a message with its header. The caller gives it back.
  Buffer* take(std::size_t bytes);
  // Buffers taken and not given back.
  std::size_t in_use() const { return in_use_; }

 private:
  static constexpr std::size_t kSmall = std::size_t{4} << 10;
  static constexpr std::size_t kLarge = kMostInMessage + 64;
  static constexpr std::size_t kMostSmall = 64;
  static constexpr std::size_t kMostLarge = 16;

  void give_back(Buffer* buffer);

  std::size_t in_use_ = 0;
  std::vector<std::unique_ptr<Buffer>> small_;
  std::vector<std::unique_ptr<Buffer>> large_;
};

}  // namespace memspan::ucx
