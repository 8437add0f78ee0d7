// SPDX-License-Identifier: Apache-2.0
// The server's end of one connection: handshake, greeting, then requests in and answers out.
//
//   stream --read--> StoreFrameReader --> hello, then requests --> Owner
//   stream <-write-- queue of frames <-- send()
//
// A session closes if its peer breaks the protocol, has not said hello in time, or takes too long
// over one frame. Other sessions are not affected. A session stops reading from a peer that does
// not read its answers, and dismisses the peer if too many are queued. It also dismisses a peer for
// lack of memory.
#pragma once

#include <deque>
#include <span>
#include <unordered_map>

#include "net/byte_channel.h"
#include "net/event_loop.h"
#include "store/wire.h"

namespace memspan {

// Limits of time and memory for a peer. A value.
struct StorePatience {
  Duration hello = std::chrono::seconds(5);    // from the connection to the whole hello
  Duration frame = std::chrono::seconds(10);   // from a frame's first byte to its last, each way
  std::size_t queued = std::size_t{64} << 20;  // of answers that it has not read, in memory
};

// Frames that wait to be sent, in one queue or in several together, and how many bytes they are in
// memory: a value that many of them share counts once. One thread at a time.
class StoreBacklog {
 public:
  void add(const StoreFrame& frame) {
    bytes_ += head_bytes(frame);
    if (frame.value.empty()) return;
    if (++shared_[frame.value.identity()] == 1) bytes_ += frame.value.size();
  }
  // `frame` must have been added.
  void remove(const StoreFrame& frame) {
    bytes_ -= head_bytes(frame);
    const auto found = shared_.find(frame.value.identity());
    if (frame.value.empty() || found == shared_.end() || --found->second > 0) return;
    bytes_ -= frame.value.size();
    shared_.erase(found);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  static std::size_t head_bytes(const StoreFrame& frame) {
    return sizeof frame + frame.head.size();
  }
  std::size_t bytes_ = 0;
  std::unordered_map<const void*, std::uint32_t> shared_;  // frames that have that value
};

// Only for the loop's thread. Shared by its owner and by the loop's callbacks; the last of them
// destroys it.
class StoreSession : public std::enable_shared_from_this<StoreSession> {
 public:
  // Keeps the sessions. Must exist until they are closed.
  class Owner {
   public:
    // Decides about a hello; any code but kOk refuses it. Requests follow.
    virtual StoreWelcome greet(SessionId from, const StoreHello& hello,
                               const ByteChannel& stream) = 0;
    // Bytes arrived, perhaps only a part of a message.
    virtual void spoke(SessionId from) = 0;
    virtual void serve(SessionId from, StoreRequest request) = 0;
    // The last call for that session; made once, also after close(). `why` is the cause of the end;
    // kAuth means a failed authentication.
    virtual void closed(SessionId id, const Status& why) = 0;
    // An allocation failed: frees the memory that is held for this case.
    virtual void free_headroom() = 0;
    // Whether a large request may use `bytes` of memory.
    virtual bool has_memory(std::size_t bytes) const = 0;

   protected:
    ~Owner() = default;
  };

  // Shared by all sessions of a thread; must outlive them.
  struct Shared {
    EventLoop& loop;
    std::span<char> chunk;  // buffer to read into
    StoreBacklog& backlog;  // the frames of all queues
  };
  StoreSession(Owner& owner, SessionId id, std::unique_ptr<ByteChannel> stream, Shared shared,
               StorePatience patience);

  void start();
  void send(const StoreAnswer& answer);
  // Drops unsent frames.
  void close(const Status& why);
  // Sends `why` to the peer, as far as it reads that in time, and closes.
  void dismiss(const Status& why);
  // Memory of the unsent frames, in bytes.
  std::size_t queued() const { return backlog_.bytes(); }
  bool is_serving() const { return stage_ == Stage::kServing; }
  // Only while is_serving().
  const ByteChannel& stream() const { return *stream_; }

 private:
  enum class Stage { kHandshake, kGreeting, kServing, kRefusing, kDismissed, kClosed };
  // Runs a callback. An exception for lack of memory dismisses only this session.
  template <typename Step>
  void run(Step step);
  void shake_hands();
  void on_ready(std::uint32_t events);
  // Watches for what is awaited.
  void watch();
  void read();
  void refuse_tls();
  void read_soon();
  void take_frames();
  void take_frame(std::string_view body);
  void greet(std::string_view body);
  void queue(StoreFrame frame);
  void write();
  void write_soon();
  void end_frame();
  void drop_queue();
  // Limits the time from the first byte of a frame to its last, in one direction.
  void time_frame(EventLoop::Token& timer, bool has_begun);
  bool goes_on(const ChannelStep& step);

  Owner& owner_;
  const SessionId id_;
  std::unique_ptr<ByteChannel> stream_;  // null when closed
  const Shared shared_;
  EventLoop::Token watch_ = 0;  // of the stream's socket
  std::uint32_t watched_ = 0;   // the events
  const StorePatience limits_;
  EventLoop::Token patience_ = 0;  // for the hello
  EventLoop::Token reading_ = 0;   // for a frame that has begun
  EventLoop::Token writing_ = 0;   // the same
  Stage stage_ = Stage::kHandshake;
  bool is_reading_ = false;  // it waits for bytes
  bool is_writing_ = false;  // it waits to write
  bool is_paused_ = false;   // not reading until the queue is shorter
  bool has_read_ = false;
  StoreFrameReader reader_{kMaxGreetingBytes};
  std::deque<StoreFrame> queue_;
  std::size_t sent_ = 0;    // of the first in the queue
  std::size_t unsent_ = 0;  // bytes of the queue, with those that frames share
  StoreBacklog backlog_;    // the queue, as it is in memory
  Status dismissal_;
};

}  // namespace memspan
