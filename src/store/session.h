// SPDX-License-Identifier: Apache-2.0
// The server's end of one connection: handshake, greeting, then requests in and answers out.
//
//   stream --read--> StoreFrameReader --> hello, then requests --> Owner
//   stream <-write-- queue of frames <-- send()
//
// A peer that breaks the protocol, has not said hello in time, or takes too long over one frame,
// is closed; nobody else notices. A peer that does not read its answers is not read from either,
// and what others' changes bring it meanwhile is bounded: beyond that it is dismissed. A peer for
// which there is no memory is dismissed, too.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>

#include "core/clock.h"
#include "store/asio.h"
#include "store/backlog.h"
#include "store/stream.h"
#include "store/wire.h"

namespace memspan {

// How long a peer may take, and how much. A value.
struct StorePatience {
  Duration hello = std::chrono::seconds(5);    // from the connection to the whole hello
  Duration frame = std::chrono::seconds(10);   // from a frame's first byte to its last, each way
  std::size_t queued = std::size_t{64} << 20;  // of answers that it has not read, as in memory
};

// Only for the thread that runs the io_context. Shared by its owner and by Asio's pending
// handlers; the last of them that goes destroys it.
class StoreSession : public std::enable_shared_from_this<StoreSession> {
 public:
  // Who keeps the sessions. Must outlive them until they are closed.
  class Owner {
   public:
    // Decides about a hello; any code but kOk refuses it. Afterwards requests come.
    virtual StoreWelcome greet(SessionId from, const StoreHello& hello,
                               const StoreStream& stream) = 0;
    // Something came, even if it is no whole message.
    virtual void spoke(SessionId from) = 0;
    virtual void serve(SessionId from, StoreRequest request) = 0;
    // The last call for that session; it comes once, also after close(). `why` tells what ended
    // it; a kAuth one failed to prove who it is.
    virtual void closed(SessionId id, const Status& why) = 0;
    // An allocation failed: gives up what is held for the way out of that.
    virtual void free_headroom() = 0;
    // Whether a large request may take so much memory.
    virtual bool has_memory(std::size_t bytes) const = 0;

   protected:
    ~Owner() = default;
  };

  // What all sessions of a thread share, and must outlive them.
  struct Shared {
    asio::io_context& context;
    std::span<char> chunk;  // room to read into
    StoreBacklog& backlog;  // the frames of all queues
  };
  StoreSession(Owner& owner, SessionId id, std::unique_ptr<StoreStream> stream, Shared shared,
               StorePatience patience);

  void start();
  void send(const StoreAnswer& answer);
  // Drops what was not sent yet.
  void close(const Status& why);
  // The same, but tells the peer why before, as far as it reads that in time.
  void dismiss(const Status& why);
  // Bytes in memory of what was not sent yet.
  std::size_t queued() const { return backlog_.bytes(); }
  bool is_serving() const { return stage_ == Stage::kServing; }
  // While it is serving.
  const StoreStream& stream() const { return *stream_; }

 private:
  enum class Stage { kHandshake, kGreeting, kServing, kRefusing, kDismissed, kClosed };
  // Of one direction: a frame that has begun has to end in time.
  struct FrameClock {
    asio::steady_timer timer;
    bool is_running = false;
  };

  // Runs a handler of Asio's. What it throws for lack of memory dismisses this session only.
  template <typename Step>
  void run(Step step);
  void shake_hands();
  void await(asio::posix::stream_descriptor::wait_type what, bool& is_awaited,
             void (StoreSession::*next)());
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
  void time_frame(FrameClock& clock, bool has_begun);
  bool goes_on(const StreamStep& step);

  Owner& owner_;
  const SessionId id_;
  std::unique_ptr<StoreStream> stream_;     // null when closed
  asio::posix::stream_descriptor watched_;  // borrows the stream's socket
  const std::span<char> chunk_;
  StoreBacklog& all_backlog_;
  const StorePatience limits_;
  asio::steady_timer patience_;  // with the hello
  FrameClock reading_;
  FrameClock writing_;
  Stage stage_ = Stage::kHandshake;
  bool is_reading_ = false;  // a handler waits for bytes
  bool is_writing_ = false;  // a handler waits for room
  bool is_paused_ = false;   // not reading until the queue is shorter
  bool has_read_ = false;
  StoreFrameReader reader_{kMaxGreetingBytes};
  std::deque<StoreFrame> queue_;
  std::size_t sent_ = 0;    // of the first in the queue
  std::size_t unsent_ = 0;  // bytes of the queue, with those that frames share
  StoreBacklog backlog_;    // the same as they are in memory
  Status dismissal_;
};

}  // namespace memspan
