// SPDX-License-Identifier: Apache-2.0
// Unread bytes of a connection, in the order of the stream. A large payload gets its place when it
// is announced and arrives later: nothing behind it is read before.
//
//   stream      [range][range][large 0: fetching][range][large 1: announced]
//   messages    number 2, which is not announced yet
//
// Memory for a large payload is taken only after its announcement, so the window bounds it.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "transport/message/ucx/buffer_pool.h"

namespace memspan::ucx {

class Channel;

// The destination of a large payload. Owned by the queue. If the queue drops it during a fetch,
// UCX's callback owns it.
struct Landing {
  Channel* channel = nullptr;  // null: dropped
  std::size_t bytes = 0;
  BufferPool::Buffer* buffer = nullptr;
  bool is_fetching = false;
  bool is_here = false;

  Landing(Channel* of, std::size_t size) : channel(of), bytes(size) {}
  ~Landing() {
    if (buffer != nullptr) buffer->give_back();
  }
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;
};

// One thread at a time.
class ReceiveQueue {
 public:
  explicit ReceiveQueue(Channel& channel) : channel_(channel) {}

  // Adds bytes of a UCX buffer, which the queue owns from keep() on.
  void push(const std::byte* at, std::size_t bytes);
  // Takes the buffer of the bytes pushed since the last call. False if none of them remain.
  bool keep(void* buffer);
  // The next large payload is announced. Returns empty or an error.
  std::string announce(std::size_t bytes);
  // Its message has arrived, perhaps before. Empty: the queue owns the message.
  std::string offer(std::uint64_t number, void* message, std::size_t bytes);

  // Returns the bytes read; 0 if the next ones have not arrived.
  std::size_t read(std::span<const iovec> to);
  bool is_readable() const;
  bool is_empty() const { return ranges_.empty(); }
  // Whether announced large payloads are missing.
  bool is_fetching() const { return !awaited_.empty() || fetching_ > 0; }
  // A fetch has succeeded or failed.
  void note_landed() { --fetching_; }
  std::size_t unread() const { return unread_; }

  // No more bytes come: discards all from the first missing payload on, or everything.
  void forget_missing();
  void clear();

 private:
  struct Range {
    const std::byte* at;  // null: in the landing
    std::size_t bytes;
    void* buffer = nullptr;  // to release after it
    std::unique_ptr<Landing> landing = nullptr;
  };
  struct Message {
    void* message;
    std::size_t bytes;
  };
  std::string fetch(Landing& landing, const Message& message);
  void* forget_last();
  void forget_from(std::size_t first);

  Channel& channel_;
  std::deque<Range> ranges_;
  std::size_t unkept_ = 0;                     // the last ones of ranges_ that have no landing
  std::size_t unread_ = 0;                     // bytes of ranges_
  std::uint64_t announced_ = 0;                // large payloads
  std::map<std::uint64_t, Landing*> awaited_;  // announced, by number
  std::map<std::uint64_t, Message> early_;     // not announced
  std::size_t fetching_ = 0;                   // of ranges_
};

}  // namespace memspan::ucx
