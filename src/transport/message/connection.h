// SPDX-License-Identifier: Apache-2.0
// Frames over one stream. Sending and receiving are independent of each other.
//
// A thread in a call of a user may wait while the stream is full. A thread that serves peers must
// not, or two processes that serve each other would wait for ever: what it cannot send at once is
// queued, and sent by whoever sends next or when the stream is writable.
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
  kWait,   // returns when all is with the carrier
  kQueue,  // never waits; what does not fit is copied, and what the peer can no longer get is lost
};

// Thread-safe, but for what only the thread that owns receiving may call.
class Connection {
 public:
  Connection(std::unique_ptr<ByteStream> stream, const Session& session, FrameSink& sink,
             std::shared_ptr<Faults> faults);

  int descriptor() const { return stream_->descriptor(); }
  bool is_opening() const { return stream_->is_opening(); }
  std::size_t window() const { return stream_->window(); }
  const Nonce& nonce() const { return session_.nonce(); }
  // Any thread; who waits in it returns.
  void cut() { stream_->cut(); }

  // Frames of one call stay together. kPeerLost when the connection has ended and this would wait
  // (else receive() tells it, behind the peer's last words), or too much is queued; kTimeout and an
  // interruption leave it whole: the rest is queued.
  Status send(std::span<const OutFrame> frames, SendMode mode,
              const Deadline& deadline = Deadline::never());
  // Sends what is queued, as far as it goes.
  void send_queued();
  bool has_queued() const { return queued_bytes_.load(std::memory_order_acquire) != 0; }

  // Bytes that have come. Any thread.
  std::uint64_t received() const { return received_.load(std::memory_order_relaxed); }

  // The right to receive, for one thread at a time.
  bool try_own() { return !is_owned_.exchange(true, std::memory_order_acquire); }
  void disown() { is_owned_.store(false, std::memory_order_release); }
  struct Received {
    std::size_t bytes = 0;
    bool is_all = true;      // nothing more is there for now
    bool is_hidden = false;  // what more there is does not show by the descriptor
  };
  // Receives once and handles it. kPeerLost when the connection has ended, other codes when what
  // came is not allowed. The owner only.
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
  // Of the owner. Who waits for an answer has nothing else to do, also with one core to itself.
  AdaptiveSpin spin_{true};
  std::atomic<bool> is_owned_{false};
  std::atomic<std::uint64_t> received_{0};

  std::mutex sending_;                // of the stream; held while a user's thread waits in send()
  std::vector<std::byte> in_flight_;  // taken from the queue; of who holds sending_
  std::size_t in_flight_done_ = 0;

  Mutex queue_mutex_;  // held for moments
  std::vector<std::byte> queue_ MEMSPAN_GUARDED_BY(queue_mutex_);
  std::uint32_t sequence_ MEMSPAN_GUARDED_BY(queue_mutex_) = 0;
  std::atomic<std::size_t> queued_bytes_{0};  // of queue_ and in_flight_
};

}  // namespace memspan
