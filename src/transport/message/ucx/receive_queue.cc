// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/receive_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/message/ucx/channel.h"

namespace memspan::ucx {

void ReceiveQueue::push(const std::byte* at, std::size_t bytes) {
  ranges_.push_back({.at = at, .bytes = bytes});
  unread_ += bytes;
  ++unkept_;
}

bool ReceiveQueue::keep(void* buffer) {
  if (std::exchange(unkept_, 0) == 0) return false;
  ranges_.back().buffer = buffer;
  return true;
}

std::string ReceiveQueue::announce(std::size_t bytes) {
  const std::uint64_t number = announced_++;
  auto made = std::make_unique<Landing>(&channel_, bytes);
  Landing& landing = *made;
  ranges_.push_back({.at = nullptr, .bytes = bytes, .landing = std::move(made)});
  unread_ += bytes;
  const auto here = early_.find(number);
  if (here == early_.end()) {
    awaited_.emplace(number, &landing);
    return {};
  }
  const Message message = here->second;
  early_.erase(here);
  std::string wrong = fetch(landing, message);
  if (!wrong.empty()) channel_.worker().drop(message.message);
  return wrong;
}

std::string ReceiveQueue::offer(std::uint64_t number, void* message, std::size_t bytes) {
  if (const auto found = awaited_.find(number); found != awaited_.end()) {
    Landing& landing = *found->second;
    awaited_.erase(found);
    return fetch(landing, {message, bytes});
  }
  // No more can be in flight.
  constexpr std::uint64_t kMostEarly = kWindow / kLargeFrom;
  if (number < announced_ || number - announced_ >= kMostEarly ||
      !early_.try_emplace(number, Message{message, bytes}).second)
    return "it sends a large payload that is not its next";
  return {};
}

std::string ReceiveQueue::fetch(Landing& landing, const Message& message) {
  if (message.bytes != landing.bytes) return "it sends a large payload of a wrong size";
  ++fetching_;
  channel_.worker().fetch(message.message, landing);
  return {};
}

bool ReceiveQueue::is_readable() const {
  return !ranges_.empty() &&
         (ranges_.front().landing == nullptr || ranges_.front().landing->is_here);
}

std::size_t ReceiveQueue::read(std::span<const iovec> to) {
  std::size_t done = 0;
  for (const iovec& place : to) {
    auto* target = static_cast<std::byte*>(place.iov_base);
    for (std::size_t room = place.iov_len; room > 0 && is_readable();) {
      Range& range = ranges_.front();
      if (range.at == nullptr) range.at = range.landing->buffer->bytes.get();
      const std::size_t bytes = std::min(room, range.bytes);
      std::memcpy(target, range.at, bytes);
      target += bytes;
      room -= bytes;
      done += bytes;
      range.at += bytes;
      range.bytes -= bytes;
      if (range.bytes != 0) continue;
      if (range.buffer != nullptr) channel_.worker().release(channel_.endpoint(), range.buffer);
      ranges_.pop_front();
    }
  }
  unread_ -= done;
  return done;
}

// Returns the buffer whose last range it was, or null.
void* ReceiveQueue::forget_last() {
  Range last = std::move(ranges_.back());
  ranges_.pop_back();
  unread_ -= last.bytes;
  if (last.landing == nullptr && unkept_ > 0) --unkept_;
  // UCX's callback owns it.
  if (last.landing != nullptr && last.landing->is_fetching)
    last.landing.release()->channel = nullptr;
  return last.buffer;
}

void ReceiveQueue::forget_missing() {
  const auto missing = std::find_if(ranges_.begin(), ranges_.end(), [](const Range& range) {
    return range.landing != nullptr && !range.landing->is_here;
  });
  forget_from(static_cast<std::size_t>(missing - ranges_.begin()));
  awaited_.clear();
  fetching_ = 0;
  for (const auto& [number, early] : early_) channel_.worker().drop(early.message);
  early_.clear();
}

void ReceiveQueue::forget_from(std::size_t first) {
  void* buffer = nullptr;
  while (ranges_.size() > first) {
    void* const before = forget_last();
    if (before == nullptr) continue;
    if (buffer != nullptr) channel_.worker().release(channel_.endpoint(), buffer);
    buffer = before;
  }
  if (buffer == nullptr) return;
  // Remaining ranges may use the buffer.
  if (first > 0 && ranges_.back().buffer == nullptr)
    ranges_.back().buffer = buffer;
  else
    channel_.worker().release(channel_.endpoint(), buffer);
}

void ReceiveQueue::clear() {
  forget_missing();
  forget_from(0);
}

}  // namespace memspan::ucx
