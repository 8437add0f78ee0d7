// SPDX-License-Identifier: Apache-2.0
#include "world/messages.h"

#include <fmt/format.h>

namespace memspan::inline world {
Status Messages::send(int peer, const MessageKey& key, std::span<const std::byte> bytes) {
  if (bytes.size() > kMostBytes)
    return {Code::kInvalidArgument,
            fmt::format("a message of {} bytes; allowed are up to {}", bytes.size(), kMostBytes)};
  const Duration limit = waiting_.limit;
  return carriage_.send(peer, key, bytes,
                        limit == Duration::zero() ? Deadline::never() : Deadline::after(limit));
}

Status Messages::deliver(int from, const MessageKey& key, Buffer bytes) {
  if (key.kind < MessageKind::kNotice || key.kind > MessageKind::kData)
    return {Code::kInvalidArgument, fmt::format("a message of kind {}", key.kind)};
  if (key.kind == MessageKind::kNotice) {
    if (on_notice_) on_notice_(from, key.id, key.sequence, bytes);
    return Status::ok();
  }
  {
    MutexLock lock(mutex_);
    table_.emplace(std::pair(from, key), std::move(bytes));
  }
  // Pairs with the fence of a waiter that sets its sleeping flag and looks once more.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiting_.self->sleeps.load(std::memory_order_relaxed) != 0) NodeSegment::ring(*waiting_.self);
  return Status::ok();
}

std::optional<Buffer> Messages::poll(int from, const MessageKey& key) {
  if (carriage_.progress) carriage_.progress();
  MutexLock lock(mutex_);
  const auto first = table_.lower_bound({from, key});
  if (first == table_.end() || first->first != std::pair(from, key)) return std::nullopt;
  return std::move(table_.extract(first).mapped());
}

}  // namespace memspan::inline world
