// SPDX-License-Identifier: Apache-2.0
// Splits received bytes into frames. A payload is received directly into the sink's memory; only
// bytes that arrive with a header pass through a buffer. A payload of words (kMostWords) is stored
// when all of it has arrived.
#pragma once

#include <sys/uio.h>

#include <cstring>

#include "transport/message/protocol.h"
#include "transport/message/session.h"

namespace memspan::inline transport {

// Copies between a frame and memory that the program uses at the same time: each aligned word of up
// to 8 bytes of the memory is read or written once and as a whole.
//
// The largest payload that is copied so.
inline constexpr std::size_t kMostWords = 64;

enum class Words : bool { kStored, kLoaded };  // `to`, or `from`, is that memory

// Copies one word, if it fits and is aligned.
template <Words way, typename Word>
bool copy_word(std::byte*& to, const std::byte*& from, std::size_t& bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(way == Words::kStored ? to : from);
  Word word;
  if (bytes < sizeof word || at % sizeof word != 0) return false;
  if constexpr (way == Words::kStored) {
    std::memcpy(&word, from, sizeof word);
    __atomic_store_n(reinterpret_cast<Word*>(to), word, __ATOMIC_RELAXED);
  } else {
    word = __atomic_load_n(reinterpret_cast<const Word*>(from), __ATOMIC_RELAXED);
    std::memcpy(to, &word, sizeof word);
  }
  to += sizeof word;
  from += sizeof word;
  bytes -= sizeof word;
  return true;
}

template <Words way>
void copy_words(std::byte* to, const std::byte* from, std::size_t bytes) {
  while (copy_word<way, std::uint64_t>(to, from, bytes) ||
         copy_word<way, std::uint32_t>(to, from, bytes) ||
         copy_word<way, std::uint16_t>(to, from, bytes) ||
         copy_word<way, std::uint8_t>(to, from, bytes))
    continue;
}

// Handles frames. A failure of begin() or end() ends the connection.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // A header has arrived. If it has a payload, pin() and unpin() follow once or more. end() is
  // last.
  virtual Status begin(const Frame& frame) = 0;
  // The address for the whole payload, valid until unpin(); null: discard it.
  virtual std::byte* pin() = 0;
  virtual void unpin() = 0;
  // The whole frame has arrived.
  virtual Status end(const Frame& frame) = 0;
  // Whether a frame of this type has to wait. Then received(0) is to be called later.
  virtual bool must_wait([[maybe_unused]] FrameType type) { return false; }
  // The sender of the first frame does not know the secret. The connection ends.
  virtual void on_stranger([[maybe_unused]] const Status& why) {}
};

// One thread at a time.
class FrameReader {
 public:
  FrameReader(FrameSink& sink, Session& session)
      : sink_(sink), session_(session), buffer_(kBufferBytes) {}

  // Returns the places to receive into, in order. received() must follow at once, because the first
  // place may be pinned.
  std::size_t prepare(std::array<iovec, 2>& places) {
    direct_ = 0;
    std::size_t count = 0;
    if (in_payload_ && frame_.payload > kMostWords) {
      std::byte* target = sink_.pin();
      is_pinned_ = true;
      if (target != nullptr) {
        const std::size_t rest = frame_.payload - payload_done_;
        direct_ = std::min(rest, kMostDirect);
        places[count++] = {target + payload_done_, direct_};
        if (direct_ < rest) return count;
      }
    }
    places[count++] = {buffer_.data() + filled_, buffer_.size() - filled_};
    return count;
  }

  // Handles the next `bytes` in these places. kInvalidArgument: not a frame; kAuth: a stranger.
  Status received(std::size_t bytes) {
    if (is_pinned_) {
      sink_.unpin();
      is_pinned_ = false;
    }
    const std::size_t direct = std::min(bytes, direct_);
    payload_done_ += static_cast<std::uint32_t>(direct);
    filled_ += bytes - direct;
    if (in_payload_ && payload_done_ == frame_.payload) MEMSPAN_PASS(finish_payload());
    return handle_buffer();
  }

  std::uint64_t frames() const { return frames_; }
  // Whether the sink lets the next frame wait. Receive nothing before.
  bool is_waiting() const { return is_waiting_; }

 private:
  // Packets that arrive while a thread copies out of a socket wait for it, so an all-reduce of 1
  // MiB over two network namespaces took 1.15 of the time without this.
  static constexpr std::size_t kMostDirect = std::size_t{64} << 10;
  // Large enough for many small frames; not larger, because it is copied.
  static constexpr std::size_t kBufferBytes = std::size_t{16} << 10;

  Status handle_buffer() {
    std::size_t at = 0;
    is_waiting_ = false;
    while (at < filled_ && !is_waiting_) {
      if (in_payload_) {
        const bool is_words = frame_.payload <= kMostWords;
        const std::size_t bytes =
            std::min<std::size_t>(filled_ - at, frame_.payload - payload_done_);
        if (is_words && bytes < frame_.payload) break;
        std::byte* target = sink_.pin();
        if (target != nullptr && is_words)
          copy_words<Words::kStored>(target, buffer_.data() + at, bytes);
        else if (target != nullptr)
          std::memcpy(target + payload_done_, buffer_.data() + at, bytes);
        sink_.unpin();
        payload_done_ += static_cast<std::uint32_t>(bytes);
        at += bytes;
        if (payload_done_ == frame_.payload) MEMSPAN_PASS(finish_payload());
      } else if (filled_ - at < kFrameBytes) {
        break;
      } else if (sink_.must_wait(static_cast<FrameType>(buffer_[at]))) {
        is_waiting_ = true;
      } else {
        MEMSPAN_TRY_ASSIGN(at, take_header(at), "receiving");
      }
    }
    filled_ -= at;
    if (at > 0 && filled_ > 0) std::memmove(buffer_.data(), buffer_.data() + at, filled_);
    return Status::ok();
  }

  // Begins the frame whose header is at `from`; returns the position of the next byte.
  Result<std::size_t> take_header(std::size_t from) {
    const std::span<const std::byte, kFrameBytes> header(buffer_.data() + from, kFrameBytes);
    auto frame = session_.open(header, static_cast<std::uint32_t>(frames_));
    if (frame.code() == Code::kAuth) sink_.on_stranger(frame.status());
    if (!frame.is_ok()) return frame.status();
    frame_ = *frame;
    ++frames_;
    MEMSPAN_PASS(sink_.begin(frame_));
    payload_done_ = 0;
    in_payload_ = frame_.payload != 0;
    if (!in_payload_) MEMSPAN_PASS(sink_.end(frame_));
    return from + kFrameBytes;
  }

  Status finish_payload() {
    in_payload_ = false;
    return sink_.end(frame_);
  }

  FrameSink& sink_;
  Session& session_;
  std::vector<std::byte> buffer_;
  std::size_t filled_ = 0;  // of an incomplete header, or of words
  std::size_t direct_ = 0;  // bytes that prepare() offered at the payload's place
  bool is_pinned_ = false;
  Frame frame_;
  bool in_payload_ = false;
  bool is_waiting_ = false;
  std::uint32_t payload_done_ = 0;
  std::uint64_t frames_ = 0;
};

}  // namespace memspan::inline transport
