// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/channel.h"

#include <array>
#include <cstring>

namespace memspan::ucx {
namespace {

// Not each time: a credit is a message.
constexpr std::size_t kTellAt = kWindow / 4;
// A message is not cut because the window is nearly full.
constexpr std::size_t kLeastRoom = kMostInMessage + kMessageCost;
constexpr std::uint64_t kMostNumbers = kWindow / kMessageCost + 1;  // and an end
constexpr std::size_t kMostParts = 64;

// The first `bytes` of `from`, after `done`, as parts.
std::span<iovec> slice(std::span<const iovec> from, std::size_t done, std::size_t bytes,
                       std::array<iovec, kMostParts>& parts) {
  std::size_t count = 0;
  for (const iovec& part : from) {
    if (bytes == 0 || count == kMostParts) break;
    if (done >= part.iov_len) {
      done -= part.iov_len;
      continue;
    }
    const std::size_t here = std::min(part.iov_len - done, bytes);
    parts[count++] = {static_cast<std::byte*>(part.iov_base) + done, here};
    bytes -= here;
    done = 0;
  }
  return {parts.data(), count};
}

std::size_t bytes_of(std::span<const iovec> parts) {
  std::size_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

}  // namespace

BufferPool::Buffer* BufferPool::take(std::size_t bytes) {
  ++in_use_;
  const bool is_large = bytes > kBytes[0];
  auto& free = free_[is_large];
  if (free.empty())
    return new Buffer{*this, is_large,
                      std::make_unique_for_overwrite<std::byte[]>(kBytes[is_large])};
  Buffer* const buffer = free.back().release();
  free.pop_back();
  return buffer;
}

void BufferPool::give_back(Buffer* buffer) {
  --in_use_;
  std::unique_ptr<Buffer> owned(buffer);
  auto& free = free_[owned->is_large];
  if (free.size() < kMostKept[owned->is_large]) free.push_back(std::move(owned));
}

void Channel::open() {
  is_open_ = true;
  send_credit();
}

// ---- sending

bool Channel::send(MessageKind kind, std::span<const iovec> data) {
  const std::uint64_t number = kind == MessageKind::kCredit ? 0 : number_++;
  told_ = taken_;
  if (endpoint_ != nullptr && worker_.post(*this, {kind, number, taken_}, data)) return true;
  fail("sending failed");
  return false;
}

ssize_t Channel::write(std::span<const iovec> from) {
  const std::size_t all = bytes_of(from);
  std::size_t done = 0;
  std::array<iovec, kMostParts> parts;
  while (done < all && !is_over()) {
    is_full_ = room() < kLeastRoom;
    if (is_full_) break;
    const auto data = slice(from, done, std::min(all - done, most_), parts);
    if (!send(MessageKind::kData, data)) return -1;
    const std::size_t bytes = bytes_of(data);
    done += bytes;
    sent_ += bytes + kMessageCost;
  }
  return is_over() ? -1 : static_cast<ssize_t>(done);
}

void Channel::sent(bool is_complete) {
  --sending_;
  if (!is_complete) fail("a message was not sent");
}

void Channel::end() {
  if (!std::exchange(has_ended_, true)) send(MessageKind::kEnd, {});
}

// ---- receiving

bool Channel::take(const MessageHeader& header, void* data, std::size_t bytes, bool is_offer) {
  if (is_finished()) return false;
  const bool is_data = header.kind == MessageKind::kData;
  if (header.kind < MessageKind::kData || header.kind > MessageKind::kCredit ||
      is_data != (bytes != 0) || bytes > kMostInMessage)
    fail("it sends a message of another kind");
  else if (header.taken > sent_)
    fail("it has taken what was not sent");
  if (is_finished()) return false;
  peer_taken_ = std::max(peer_taken_, header.taken);
  if (!std::exchange(is_open_, true) || (is_full_ && room() >= kLeastRoom)) tell_change();
  return header.kind != MessageKind::kCredit && take_numbered(header, data, bytes, is_offer);
}

bool Channel::take_numbered(const MessageHeader& header, void* data, std::size_t bytes,
                            bool is_offer) {
  const std::uint64_t place = header.number - next_;
  if (place < kMostNumbers && arrivals_.size() <= place) arrivals_.resize(place + 1);
  if (place >= kMostNumbers || arrivals_[place].channel != nullptr) {
    fail("it sends a message that is not its next");
    return false;
  }
  if (bytes != 0 && unread_ + bytes + kMessageCost > kWindow) {
    fail("it sends more than it was allowed to");
    return false;
  }
  Arrival& arrival = arrivals_[place];
  arrival.channel = this;
  arrival.bytes = bytes;
  arrival.is_end = header.kind == MessageKind::kEnd;
  if (bytes != 0) unread_ += bytes + kMessageCost;
  // After a cut only the peer's end matters.
  const bool is_kept = bytes != 0 && !is_cut_;
  if (is_kept && is_offer) {
    ++fetching_;
    worker_.fetch(data, arrival);
    return true;
  }
  if (is_kept) arrival.held = data;
  arrival.is_here = true;
  note_here();
  return is_kept;
}

void Channel::fetched(Arrival& arrival, bool is_complete) {
  --fetching_;
  arrival.is_here = is_complete;
  if (!is_complete) fail("a large message did not come");
  if (is_cut_ || !is_complete) release(arrival);
  note_here();
}

// Moves on to the first message that has not arrived completely.
void Channel::note_here() {
  const bool was_readable = is_readable();
  while (whole_ - next_ < arrivals_.size() && arrivals_[whole_ - next_].is_here) {
    if (arrivals_[whole_ - next_].is_end) peer_ended_ = true;
    ++whole_;
  }
  if (peer_ended_) end();
  // The caller does not read after a cut.
  while (is_cut_ && next_ != whole_) pop();
  if (peer_ended_ || (!was_readable && !is_reading_ && is_readable())) tell_change();
}

bool Channel::is_readable() const {
  return next_ != whole_ && !arrivals_.front().is_end;
}

ssize_t Channel::read(std::span<const iovec> to) {
  if (is_cut_) return -1;
  std::size_t done = 0;
  for (const iovec& place : to) {
    auto* target = static_cast<std::byte*>(place.iov_base);
    for (std::size_t room = place.iov_len; room > 0 && is_readable();) {
      const Arrival& first = arrivals_.front();
      const auto* from = static_cast<const std::byte*>(
          first.buffer == nullptr ? first.held : first.buffer->bytes.get());
      const std::size_t bytes = std::min(room, first.bytes - read_);
      std::memcpy(target, from + read_, bytes);
      target += bytes;
      room -= bytes;
      done += bytes;
      read_ += bytes;
      if (read_ == first.bytes) pop();
    }
  }
  if (taken_ - told_ >= kTellAt && !is_over()) send_credit();
  if (done == 0 && is_over()) return -1;
  return static_cast<ssize_t>(done);
}

// The first message was read, or is not needed.
void Channel::pop() {
  Arrival& first = arrivals_.front();
  if (first.bytes != 0) {
    taken_ += first.bytes + kMessageCost;
    unread_ -= first.bytes + kMessageCost;
  }
  release(first);
  read_ = 0;
  ++next_;
  arrivals_.pop_front();
}

void Channel::release(Arrival& arrival) {
  if (arrival.held != nullptr) worker_.release(std::exchange(arrival.held, nullptr));
  if (arrival.buffer != nullptr) std::exchange(arrival.buffer, nullptr)->give_back();
}

// ---- the end

void Channel::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
  tell_change();
}

void Channel::cut() {
  if (std::exchange(is_cut_, true)) return;
  on_change_ = nullptr;
  if (failure_.empty() && endpoint_ != nullptr) end();
  for (Arrival& arrival : arrivals_)
    if (arrival.is_here) release(arrival);
  while (next_ != whole_) pop();
}

bool Channel::may_close(const Deadline& limit) const {
  // Unread bytes stay readable after a failure, without the endpoint.
  if (!is_cut_) return !failure_.empty();
  return is_finished() || limit.has_passed();
}

}  // namespace memspan::ucx
