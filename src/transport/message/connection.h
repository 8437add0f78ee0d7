// SPDX-License-Identifier: Apache-2.0
// Frames over one stream. Sending and receiving are independent of each other.
//
// A thread in a user's call may wait while the stream is full. A thread that serves peers must not:
// two processes that serve each other would wait forever. Bytes that it cannot send at once are
// queued. They are sent by the next sender or when the stream is writable.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/adaptive_spin.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "transport/message/carrier.h"
#include "transport/message/faults.h"
#include "transport/message/frame_reader.h"
#include "transport/message/protocol.h"

namespace memspan {

// `payload` has frame.payload bytes.
struct OutFrame {
  Frame frame;
  const void* payload = nullptr;
};

enum class SendMode : std::uint8_t {
  kWait,   // returns when the carrier has all
  kQueue,  // never waits; copies what does not fit, and drops it if the peer is lost
};

// Thread-safe, except for functions of the receiving thread.
class Connection {
 public:
  Connection(std::unique_ptr<ByteStream> stream, const Session& session, FrameSink& sink,
             std::shared_ptr<Faults> faults);

  int descriptor() const { return stream_->descriptor(); }
  bool is_opening() const { return stream_->is_opening(); }
  std::size_t window() const { return stream_->window(); }
  const Nonce& nonce() const { return session_.nonce(); }
  // Any thread may call it; waiting threads return.
  void cut() { stream_->cut(); }

  // Frames of one call stay together. kPeerLost: the connection has ended and the mode is kWait, or
  // too much is queued. With kQueue only receive() reports the end, after the peer's last frames.
  // After kTimeout or an interrupt the connection is intact: begun frames are queued, others
  // are dropped.
  Status send(std::span<const OutFrame> frames, SendMode mode,
              const Deadline& deadline = Deadline::never());
  // Sends queued bytes until the stream is full.
  void send_queued();
  // Sends that the connection ends on purpose, and what is queued before it. Tries for a moment:
  // the stream may be full, or another thread may hold it.
  void say_goodbye();
  bool has_queued() const { return queued_bytes_.load(std::memory_order_acquire) != 0; }

  // Bytes received. Any thread may call it.
  std::uint64_t received() const { return received_.load(std::memory_order_relaxed); }

  // The right to receive, for one thread at a time.
  bool try_own() { return !is_owned_.exchange(true, std::memory_order_acquire); }
  void disown() { is_owned_.store(false, std::memory_order_release); }
  struct Received {
    std::size_t bytes = 0;
    bool is_all = true;      // nothing more has arrived
    bool is_hidden = false;  // the descriptor does not show the rest
  };
  // Receives once and handles the frames. kPeerLost: the connection has ended; other codes: the
  // peer broke the protocol. Only the owner calls it.
  Result<Received> receive(Waiting waiting);

 private:
  static constexpr std::size_t kFramesAtOnce = 16;

  bool has_faults() const { return faults_ != nullptr && faults_->is_any(); }
  bool hold(Waiting waiting) const;
  Status send_some(std::span<const OutFrame> frames, SendMode mode, const Deadline& deadline);
  void write_header(const Frame& frame, FrameHeader& out) MEMSPAN_REQUIRES(queue_mutex_);
  std::size_t number(std::span<const OutFrame> frames, std::span<FrameHeader> headers,
                     std::span<iovec> parts) MEMSPAN_REQUIRES(queue_mutex_);
  Status write(std::span<iovec> parts, SendMode mode, const Deadline& deadline);
  Status queue(std::span<const OutFrame> frames);
  Status not_sent(SendMode mode);
  Status append(std::span<const iovec> parts);
  Status write_queue(Waiting waiting);

  const std::unique_ptr<ByteStream> stream_;
  FrameSink& sink_;
  const std::shared_ptr<Faults> faults_;
  Session session_;
  FrameReader reader_;
  // For the owner. It spins even on one core: a waiting thread has nothing else to do.
  AdaptiveSpin spin_{true};
  std::atomic<bool> is_owned_{false};
  std::atomic<std::uint64_t> received_{0};

  std::mutex sending_;                // of the stream; held while a user's thread waits in send()
  std::vector<std::byte> in_flight_;  // taken from the queue; guarded by sending_
  std::size_t in_flight_done_ = 0;

  Mutex queue_mutex_;  // held briefly
  std::vector<std::byte> queue_ MEMSPAN_GUARDED_BY(queue_mutex_);
  std::uint32_t sequence_ MEMSPAN_GUARDED_BY(queue_mutex_) = 0;
  std::atomic<std::size_t> queued_bytes_{0};  // of queue_ and in_flight_
};

}  // namespace memspan
