// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace memspan::ucx {
namespace {

// Not each time: a credit is a message.
constexpr std::size_t kCreditAt = kWindow / 4;
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

void Channel::open() {
  is_open_ = true;
  send(ChunkKind::kOpen, kWindow, {});
}

bool Channel::send(ChunkKind kind, std::uint32_t value, std::span<const iovec> payload) {
  if (endpoint_ != nullptr && worker_.post(endpoint_, {kind, value}, payload)) return true;
  fail("sending failed");
  return false;
}

bool Channel::send_large(std::span<const iovec> payload, std::size_t bytes) {
  if (!send(ChunkKind::kLarge, static_cast<std::uint32_t>(bytes), {})) return false;
  if (worker_.post_large(endpoint_, large_sent_++, payload)) return true;
  fail("sending failed");
  return false;
}

bool Channel::take(void* buffer, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(buffer);
  while (bytes > 0 && !is_finished()) {
    if (payload_left_ == 0) {
      const std::size_t used = take_header(at, bytes);
      at += used;
      bytes -= used;
      continue;
    }
    const std::size_t here = std::min(bytes, payload_left_);
    if (queue_.unread() + here > kWindow) {
      fail("it sends more than it was allowed to");
      break;
    }
    // After a cut only the peer's end matters.
    if (!is_cut_) queue_.push(at, here);
    payload_left_ -= here;
    at += here;
    bytes -= here;
  }
  const bool is_kept = queue_.keep(buffer);
  signal_.set_readable(queue_.is_readable());
  return is_kept;
}

void Channel::announce(std::size_t bytes) {
  if (queue_.unread() + bytes > kWindow) return fail("it sends more than it was allowed to");
  std::string wrong = queue_.announce(bytes);
  if (!wrong.empty()) fail(std::move(wrong));
}

bool Channel::take_large(std::uint64_t number, void* message, std::size_t bytes) {
  if (is_over()) return false;
  std::string wrong = queue_.offer(number, message, bytes);
  if (wrong.empty()) return true;
  fail(std::move(wrong));
  return false;
}

void Channel::landed(std::string_view failure) {
  queue_.note_landed();
  if (!failure.empty()) return fail(fmt::format("a large payload did not come: {}", failure));
  signal_.set_readable(queue_.is_readable());
  if (peer_ends_ && !queue_.is_fetching()) note_end();
}

std::size_t Channel::take_header(const std::byte* at, std::size_t bytes) {
  const std::size_t used = std::min(bytes, kChunkBytes - header_bytes_);
  std::memcpy(header_.data() + header_bytes_, at, used);
  header_bytes_ += used;
  if (header_bytes_ < kChunkBytes) return used;
  header_bytes_ = 0;
  Chunk chunk;
  std::memcpy(&chunk, header_.data(), sizeof chunk);
  handle(chunk);
  return used;
}

void Channel::handle(const Chunk& chunk) {
  const bool is_first = !is_open_;
  if (is_first && chunk.kind != ChunkKind::kOpen) return fail("it does not speak this protocol");
  switch (chunk.kind) {
    case ChunkKind::kOpen:
      if (!is_first) return fail("it opens again");
      is_open_ = true;
      return signal_.set_writable(true);
    case ChunkKind::kData:
      if (chunk.value == 0 || chunk.value > kMostInChunk) return fail("it sends a wrong size");
      payload_left_ = chunk.value;
      return;
    case ChunkKind::kCredit:
      if (chunk.value > kWindow - credit_) return fail("it credits what was not sent");
      credit_ += chunk.value;
      return signal_.set_writable(true);
    case ChunkKind::kLarge:
      if (chunk.value < kLargeFrom || chunk.value > kMostInChunk)
        return fail("it sends a large payload of a wrong size");
      if (!is_cut_) announce(chunk.value);
      return;
    case ChunkKind::kEnd:
      peer_ends_ = true;
      if (!queue_.is_fetching()) note_end();
      return;
  }
  fail(fmt::format("it sends a chunk of kind {}", static_cast<std::uint32_t>(chunk.kind)));
}

void Channel::note_end() {
  peer_ended_ = true;
  end();
  signal_.hang_up();
}

ssize_t Channel::read(std::span<const iovec> to) {
  if (is_cut_) return -1;
  const std::size_t done = queue_.read(to);
  if (!queue_.is_readable()) signal_.set_readable(false);
  if (done == 0) return is_over() && queue_.is_empty() ? -1 : 0;
  give_credit(done);
  return static_cast<ssize_t>(done);
}

void Channel::give_credit(std::size_t bytes) {
  uncredited_ += bytes;
  if (uncredited_ < kCreditAt || is_over()) return;
  send(ChunkKind::kCredit, static_cast<std::uint32_t>(std::exchange(uncredited_, 0)), {});
}

ssize_t Channel::write(std::span<const iovec> from) {
  const std::size_t all = bytes_of(from);
  std::size_t done = 0;
  std::array<iovec, kMostParts> parts;
  while (done < all && credit_ > 0) {
    if (is_over()) return -1;
    const auto payload =
        slice(from, done, std::min({all - done, credit_, std::size_t{kMostInChunk}}), parts);
    const std::size_t bytes = bytes_of(payload);
    const bool is_large = uses_rendezvous_ && bytes >= kLargeFrom;
    if (!(is_large ? send_large(payload, bytes)
                   : send(ChunkKind::kData, static_cast<std::uint32_t>(bytes), payload)))
      return -1;
    done += bytes;
    credit_ -= bytes;
  }
  if (is_over()) return -1;
  if (done == 0) signal_.set_writable(false);
  return static_cast<ssize_t>(done);
}

void Channel::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
  queue_.forget_missing();
  signal_.hang_up();
}

void Channel::end() {
  if (!std::exchange(has_ended_, true)) send(ChunkKind::kEnd, 0, {});
}

void Channel::cut() {
  if (is_cut_) return;
  if (failure_.empty() && endpoint_ != nullptr) end();
  is_cut_ = true;
  queue_.clear();
  if (peer_ends_ && !peer_ended_) note_end();
  signal_.hang_up();
}

bool Channel::may_close(const Deadline& limit) const {
  // UCX's buffers must first return to their endpoint.
  if (!is_cut_) return !failure_.empty() && queue_.is_empty();
  return is_finished() || limit.has_passed();
}

}  // namespace memspan::ucx
