// SPDX-License-Identifier: Apache-2.0
// The server's end of one connection: a greeting, then requests in and answers out.
//
//   socket --read--> FrameReader --> hello, then requests --> Owner::serve
//   socket <-write-- queue of frames <-- send()
//
// A peer that breaks the protocol, or has not said hello in time, is closed; nobody else notices.
// A peer that does not read its answers is not read from either, so that it cannot fill our
// memory.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "core/clock.h"
#include "store/asio.h"
#include "store/wire.h"

namespace memspan {

// Only for the thread that runs the socket's io_context. Shared by its owner and by Asio's
// pending handlers; the last of them that goes destroys it.
class StoreSession : public std::enable_shared_from_this<StoreSession> {
 public:
  using Id = std::uint64_t;
  using Socket = asio::generic::stream_protocol::socket;

  // Who keeps the sessions. Must outlive them until they are closed.
  class Owner {
   public:
    virtual void serve(Id from, StoreRequest request) = 0;
    // The last call for that session; it comes once, also after close().
    virtual void closed(Id id) = 0;

   protected:
    ~Owner() = default;
  };

  StoreSession(Owner& owner, Id id, Socket socket);

  // Begins to read. The peer has `patience` to say hello.
  void start(Duration patience);
  void send(const StoreAnswer& answer);
  // Drops what was not sent yet.
  void close();

 private:
  enum class Stage { kGreeting, kServing, kRefusing, kClosed };

  void read();
  void take_frames();
  void take_frame(std::string_view body);
  void greet(std::string_view body);
  void queue(std::string frame);
  void write();
  void written(std::size_t bytes);

  Owner& owner_;
  const Id id_;
  Socket socket_;
  asio::steady_timer patience_;
  Stage stage_ = Stage::kGreeting;
  FrameReader reader_{kMaxGreetingBytes};
  bool is_paused_ = false;  // not reading until the queue is shorter
  std::deque<std::string> queue_;
  std::size_t queued_bytes_ = 0;
  std::array<char, 16384> chunk_ = {};
};

}  // namespace memspan
