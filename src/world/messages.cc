// SPDX-License-Identifier: Apache-2.0
#include "world/messages.h"

#include <fmt/format.h>

namespace memspan {
std::size_t Messages::PlaceHash::operator()(const Place& place) const {
  std::uint64_t hash = place.key.sequence * 0x9e3779b97f4a7c15;
  hash ^= (place.key.id + (hash << 6) + (hash >> 2)) * 0xbf58476d1ce4e5b9;
  hash ^= static_cast<std::uint64_t>(place.from) << 8 | static_cast<std::uint64_t>(place.key.kind);
  return hash ^ hash >> 29;
}

Status Messages::send(int peer, const MessageKey& key, std::span<const std::byte> bytes) {
  if (bytes.size() > kMostBytes)
    return {Code::kInvalidArgument,
            fmt::format("a message of {} bytes; allowed are up to {}", bytes.size(), kMostBytes)};
  const MessageTag tag{static_cast<std::uint64_t>(key.kind), key.id, key.sequence};
  if (key.kind == MessageKind::kNotice) return carriage_.post(peer, tag, bytes);
  const Duration limit = waiting_.limit;
  return carriage_.send(peer, tag, bytes,
                        limit == Duration::zero() ? Deadline::never() : Deadline::after(limit));
}

Status Messages::deliver(int from, const MessageTag& tag, Buffer bytes) {
  const auto kind = static_cast<MessageKind>(tag.kind);
  if (kind < MessageKind::kNotice || kind > MessageKind::kData)
    return {Code::kInvalidArgument, fmt::format("a message of kind {}", tag.kind)};
  if (kind == MessageKind::kNotice) {
    if (on_notice_) on_notice_(from, tag.id, tag.sequence, bytes);
    return Status::ok();
  }
  {
    MutexLock lock(mutex_);
    table_[{from, {kind, tag.id, tag.sequence}}].push_back(std::move(bytes));
  }
  // Pairs with the fence of a waiter that sets its sleeping flag and looks once more.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiting_.self->sleeps.load(std::memory_order_relaxed) != 0) NodeSegment::ring(*waiting_.self);
  return Status::ok();
}

std::optional<Buffer> Messages::poll(int from, const MessageKey& key) {
  if (carriage_.progress) carriage_.progress();
  MutexLock lock(mutex_);
  const auto found = table_.find({from, key});
  if (found == table_.end()) return std::nullopt;
  std::vector<Buffer>& arrived = found->second;
  std::optional<Buffer> taken = std::move(arrived.front());
  arrived.erase(arrived.begin());
  if (arrived.empty()) table_.erase(found);
  return taken;
}

}  // namespace memspan
