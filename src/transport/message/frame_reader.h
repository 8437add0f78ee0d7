// SPDX-License-Identifier: Apache-2.0
// Splits received bytes into frames. A payload is received directly into the sink's memory; only
// bytes that arrive with a header pass through a buffer. A payload of words (kMostWords) is stored
// when all of it has arrived.
#pragma once

#include <sys/uio.h>

#include <cstring>

#include "transport/message/protocol.h"
#include "transport/message/session.h"

namespace memspan {

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
  std::size_t prepare(std::array<iovec, 2>& places);
  // Handles the next `bytes` in these places. kInvalidArgument: not a frame; kAuth: a stranger.
  Status received(std::size_t bytes);

  std::uint64_t frames() const { return frames_; }
  // Whether the sink lets the next frame wait. Receive nothing before.
  bool is_waiting() const { return is_waiting_; }

 private:
  // Large enough for many small frames; not larger, because it is copied.
  static constexpr std::size_t kBufferBytes = std::size_t{16} << 10;

  Status handle_buffer();
  Result<std::size_t> take_header(std::size_t from);
  Status finish_payload();

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

}  // namespace memspan
