// SPDX-License-Identifier: Apache-2.0
#include "world/messages.h"

#include <fmt/format.h>

#include <cstring>

namespace memspan {
namespace {

// In front of a message's bytes.
struct Head {
  std::uint64_t id;
  std::uint64_t sequence;
};
static_assert(sizeof(Head) == 16);

// Most messages are a few words: those need no allocation to stand behind their head.
constexpr std::size_t kSmallBytes = 1024;

}  // namespace

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
  const Head head{key.id, key.sequence};
  std::byte small[kSmallBytes];
  Bytes large;
  std::byte* message = small;
  const std::size_t length = sizeof head + bytes.size();
  if (length > sizeof small) {
    large.resize(length);
    message = large.data();
  }
  std::memcpy(message, &head, sizeof head);
  if (!bytes.empty()) std::memcpy(message + sizeof head, bytes.data(), bytes.size());
  return carriage_.send(peer, static_cast<std::uint64_t>(key.kind), {message, length});
}

Status Messages::deliver(int from, std::uint64_t number, std::span<const std::byte> message) {
  Head head{};
  if (message.size() < sizeof head || message.size() > sizeof head + kMostBytes)
    return {Code::kInvalidArgument, fmt::format("a message of {} bytes", message.size())};
  std::memcpy(&head, message.data(), sizeof head);
  const auto kind = static_cast<MessageKind>(number);
  if (kind < MessageKind::kNotice || kind > MessageKind::kPoint)
    return {Code::kInvalidArgument, fmt::format("a message of kind {}", number)};
  const std::span<const std::byte> bytes = message.subspan(sizeof head);
  if (kind == MessageKind::kNotice) {
    if (on_notice_) on_notice_(from, head.id, head.sequence, bytes);
    return Status::ok();
  }
  {
    MutexLock lock(mutex_);
    table_[{from, {kind, head.id, head.sequence}}].emplace_back(bytes.begin(), bytes.end());
  }
  // Pairs with the fence of a waiter that sets its sleeping flag and looks once more.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiting_.self->sleeps.load(std::memory_order_relaxed) != 0) NodeSegment::ring(*waiting_.self);
  return Status::ok();
}

std::optional<Messages::Bytes> Messages::poll(int from, const MessageKey& key) {
  if (carriage_.progress) carriage_.progress();
  MutexLock lock(mutex_);
  const auto found = table_.find({from, key});
  if (found == table_.end()) return std::nullopt;
  std::optional<Bytes> taken = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) table_.erase(found);
  return taken;
}

Result<Messages::Bytes> Messages::receive(const char* what, int from, const MessageKey& key) {
  return receive(what, from, key, [&] { return waiting_.is_gone(from) ? from : -1; });
}

void Messages::discard(MessageKind kind, std::uint64_t id) {
  MutexLock lock(mutex_);
  std::erase_if(table_, [&](const auto& entry) {
    return entry.first.key.kind == kind && entry.first.key.id == id;
  });
}

std::size_t Messages::size() const {
  MutexLock lock(mutex_);
  std::size_t count = 0;
  for (const auto& [place, messages] : table_) count += messages.size();
  return count;
}

}  // namespace memspan
