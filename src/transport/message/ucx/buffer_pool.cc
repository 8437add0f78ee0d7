// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/buffer_pool.h"

namespace memspan::ucx {

BufferPool::Buffer* BufferPool::take(std::size_t bytes) {
  ++in_use_;
  auto& free = bytes <= kSmall ? small_ : large_;
  if (free.empty()) {
    const std::size_t room = bytes <= kSmall ? kSmall : kLarge;
    return new Buffer{*this, room, std::unique_ptr<std::byte[]>(new std::byte[room]), nullptr, {}};
  }
  Buffer* const buffer = free.back().release();
  free.pop_back();
  return buffer;
}

void BufferPool::give_back(Buffer* buffer) {
  --in_use_;
  std::unique_ptr<Buffer> owned(buffer);
  const bool is_small = owned->room == kSmall;
  auto& free = is_small ? small_ : large_;
  if (free.size() < (is_small ? kMostSmall : kMostLarge)) free.push_back(std::move(owned));
}

}  // namespace memspan::ucx
