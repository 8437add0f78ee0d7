// SPDX-License-Identifier: Apache-2.0
// Frames over one connection. Nothing waits: frames that the stream does not take are queued, and
// sent when it can take more.
#pragma once

#include <fmt/format.h>

#include "transport/message/carrier.h"
#include "transport/message/engine.h"
#include "transport/message/frame_reader.h"
#include "transport/message/message_core.h"
#include "transport/message/session.h"

namespace memspan::inline transport {

// A peer that hears no goodbye takes the end for a death. One that is stopped does not take it.
inline constexpr Duration kGoodbyeLimit = std::chrono::milliseconds(20);

// `payload` has frame.payload bytes.
struct OutFrame {
  Frame frame;
  const void* payload = nullptr;
};

// On the stack of a call: how many of its frames a connection still has to send. Their payloads are
// in the caller's memory.
struct Parcel {
  std::size_t frames = 0;
};

// The owner of a connection, which also takes its frames. Called with the turn.
class ConnectionOwner : public FrameSink {
 public:
  // After frames were handled, and when a timer has come. A failure ends the connection.
  virtual Status after_look() { return Status::ok(); }
  // The connection has ended, after the peer's last frames. kPeerLost: the connection is cut; other
  // codes: the peer broke the protocol. The owner may destroy the connection.
  virtual void on_end(const Status& why) = 0;
};

// Detects whether the other end of a connection lives. Each side sends a beat in each interval,
// which the other answers, and checks whether bytes arrived, besides the other's beats. So a host
// without power, a network that is broken in one direction or both, and a stopped process are found
// at the limit. One thread at a time.
class Heartbeat {
 public:
  // A peer that is silent for `limit` is lost.
  explicit Heartbeat(Duration limit) : limit_(limit), interval_(limit / kLooksInLimit) {}

  bool has_begun() const { return has_begun_; }
  void begin(Clock::time_point now) {
    has_begun_ = true;
    heard_ = looked_ = now;
  }
  // When to look next, once it has begun.
  Clock::time_point next() const { return looked_ + interval_; }
  bool is_due(Clock::time_point now) const { return has_begun_ && now >= next(); }
  // `received`: all bytes so far. kPeerLost at the limit. A process that was itself stopped for
  // some intervals could not receive, so it starts over.
  Status look(Clock::time_point now, std::uint64_t received) {
    const bool stood_still = now - looked_ > kIntervalsOfStandstill * interval_;
    if (std::exchange(received_, received) != received || stood_still) heard_ = now;
    looked_ = now;
    if (now - heard_ < limit_) return Status::ok();
    return {Code::kPeerLost,
            fmt::format("it has been silent for {:.1f} s", to_seconds(now - heard_))};
  }

 private:
  static constexpr int kLooksInLimit = 5;
  static constexpr int kIntervalsOfStandstill = 3;

  const Duration limit_;
  const Duration interval_;
  bool has_begun_ = false;
  std::uint64_t received_ = 0;
  Clock::time_point heard_{};
  Clock::time_point looked_{};
};

// All functions require the turn.
class Connection final : public Source, public std::enable_shared_from_this<Connection> {
 public:
  Connection(MessageCore& core, std::unique_ptr<ByteStream> stream, const Session& session,
             ConnectionOwner& owner);

  // The engine watches it from now on.
  Status start();
  // Ends it; the owner is not called any more.
  void close();
  bool is_closed() const { return is_closed_; }
  Engine::Id id() const { return id_; }
  std::size_t window() const { return stream_->window(); }
  const Session& session() const { return session_; }

  // Frames of one call stay together, except that answers and requests take turns. The rest that
  // the stream does not take stays in the caller's memory until parcel->frames is 0 or withdraw();
  // without a parcel it is copied. kPeerLost: too much is queued. If the connection is cut, only
  // on_end() reports it.
  Status submit(std::span<const OutFrame> frames, Parcel* parcel);
  // Goes before all frames that wait. Its payload is copied. Returns what submit() does.
  Status submit_control(const OutFrame& frame);
  // Drops the frames of the parcel, except those that have their numbers: their rest is copied.
  void withdraw(Parcel& parcel);
  bool has_unsent() const { return unsent_frames() != 0; }

  // From now on the peer is lost if it is silent for the limit (Heartbeat).
  void expect_life();
  // The peer has sent a beat: answers it, and expects life.
  Status take_beat();
  // Calls the owner's side soon.
  void call_again() {
    engine_.assert_turn();
    engine_.call_again(id_);
  }
  void wake_at(Clock::time_point when) {
    engine_.assert_turn();
    engine_.wake_at(id_, when);
  }

  void on_ready(std::uint32_t events) override;
  bool look() override;

 private:
  static constexpr std::size_t kFramesAtOnce = 16;
  // Messages that wait for their handlers.
  static constexpr std::size_t kMostUndelivered = std::size_t{16} << 20;
  struct Queued {
    OutFrame out;
    Buffer copy;  // of the payload
    Parcel* parcel;
  };
  struct Queue {
    std::deque<Queued> frames;
    std::size_t copied_bytes = 0;
  };

  std::size_t unsent_frames() const {
    return frame_count_ + control_.frames.size() + answers_.frames.size() + requests_.frames.size();
  }
  void on_change();
  bool has_faults() const {
    return core_.options.faults != nullptr && core_.options.faults->is_any();
  }
  // Reads no more while many messages wait for their handlers.
  bool is_overrun() const { return core_.deliveries.bytes() > kMostUndelivered; }
  Queue& next_queue();
  bool is_held_back(std::uint32_t events);
  bool has_room_for(const OutFrame& out) const;
  void seal(const OutFrame& out, Buffer copy, Parcel* parcel);
  bool write();
  void clear_batch() { frame_count_ = next_part_ = batch_bytes_ = 0; }
  void flush();
  Status enqueue(Queue& queue, const OutFrame& out, Parcel* parcel, std::size_t most);
  void clear_queues() {
    control_ = {};
    answers_ = {};
    requests_ = {};
    clear_batch();
  }
  void own_rest(const Parcel* parcel);
  Status receive_some();
  Result<bool> receive();
  Status check_life();
  Status count_for_faults(std::uint64_t frames);
  void finish(const Status& received);
  void watch();

  MessageCore& core_;
  Engine& engine_;
  const std::unique_ptr<ByteStream> stream_;
  ConnectionOwner& owner_;
  Session session_;
  FrameReader reader_;
  Engine::Id id_ = 0;
  bool is_closed_ = false;
  bool is_broken_ = false;      // the stream takes nothing any more
  bool has_changed_ = false;    // since the last on_ready()
  std::uint64_t received_ = 0;  // bytes
  std::uint64_t beats_ = 0;     // received
  std::uint64_t unread_looks_ = 0;
  Heartbeat heartbeat_;
  Clock::time_point held_until_{};  // a fault

  // The batch: frames that have their numbers, in the order of the stream. It is sent before
  // anything else. Each frame has two parts, header and payload.
  std::array<FrameHeader, kFramesAtOnce> headers_;
  std::array<iovec, 2 * kFramesAtOnce> parts_;
  std::array<Buffer, kFramesAtOnce> copies_;
  std::array<Parcel*, kFramesAtOnce> parcels_;
  std::size_t frame_count_ = 0;
  std::size_t next_part_ = 0;  // the first one that is not sent completely
  std::size_t batch_bytes_ = 0;
  std::uint32_t sequence_ = 0;
  Queue control_;
  Queue answers_;
  Queue requests_;
  bool is_answers_turn_ = false;  // they go next, if both wait
};

}  // namespace memspan::inline transport
