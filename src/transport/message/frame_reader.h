// SPDX-License-Identifier: Apache-2.0
// Cuts what is received into frames. A payload is received straight to where its frame's reader
// wants it; only what comes together with a header passes through a buffer.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.h"
#include "transport/message/protocol.h"
#include "transport/message/session.h"

namespace memspan {

// What is done with frames. A failure of begin() or end() ends the connection.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // A header is here. With a payload, pin() and unpin() follow, once or often, then end().
  virtual Status begin(const Frame& frame) = 0;
  // Where the payload of the frame begins, valid until unpin(); null: it is thrown away.
  virtual std::byte* pin() = 0;
  virtual void unpin() = 0;
  // All of it is here.
  virtual Status end(const Frame& frame) = 0;
  // The first frame came from who does not know the secret. The connection ends then.
  virtual void on_stranger([[maybe_unused]] const Status& why) {}
  // The stream is full, and the thread that sends is about to wait.
  virtual void on_full() {}
};

// One thread at a time.
class FrameReader {
 public:
  FrameReader(FrameSink& sink, Session& session)
      : sink_(sink), session_(session), buffer_(kBufferBytes) {}

  // Where to receive to, in this order; received() or cancel() must follow at once, since the
  // first place may be pinned.
  std::size_t prepare(std::array<iovec, 2>& places);
  // Handles the next `bytes`, which are there now. kInvalidArgument: not a frame; kAuth: a
  // stranger.
  Status received(std::size_t bytes);

  std::uint64_t frames() const { return frames_; }
  // Something of a frame is here, not all.
  bool has_part() const { return in_payload_ || filled_ > 0; }

 private:
  // Large enough for many small frames at once; small, since its bytes are copied.
  static constexpr std::size_t kBufferBytes = std::size_t{16} << 10;

  Status handle_buffer();
  Result<std::size_t> take_header(std::size_t from);
  Status finish_payload();

  FrameSink& sink_;
  Session& session_;
  std::vector<std::byte> buffer_;
  std::size_t filled_ = 0;  // of a header that is not all here
  std::size_t direct_ = 0;  // bytes that prepare() offered at the payload's place
  bool is_pinned_ = false;
  Frame frame_;
  bool in_payload_ = false;
  std::uint32_t payload_done_ = 0;
  std::uint64_t frames_ = 0;
};

}  // namespace memspan
