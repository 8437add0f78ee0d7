// SPDX-License-Identifier: Apache-2.0
// What came on a connection and was not read yet, in the order of the stream. A large payload has
// its place there as soon as it is announced, and comes later: nothing behind it is read before.
//
//   stream      [range][range][large 0: fetching][range][large 1: announced]
//   messages    number 2, which is not announced yet
//
// Memory for large payloads is taken when they are announced, so the window bounds it.
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

// Where a large payload is fetched to. Owned by the queue; while it is fetched, by UCX's callback
// if the queue does not want it any more.
struct Landing {
  Channel* channel = nullptr;  // null: nobody wants it
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

  // Bytes in a buffer of UCX's, which the queue has from keep() on.
  void push(const std::byte* at, std::size_t bytes);
  // The buffer of those pushed since the last call. False when none of them is wanted any more.
  bool keep(void* buffer);
  // The next large payload is announced. Empty, or what is wrong with it.
  std::string announce(std::size_t bytes);
  // Its message is here, which may be before. Empty: the queue has the message.
  std::string offer(std::uint64_t number, void* message, std::size_t bytes);

  // How much was read; 0 when the next bytes are not here.
  std::size_t read(std::span<const iovec> to);
  bool is_readable() const;
  bool is_empty() const { return ranges_.empty(); }
  // Whether large payloads are announced and not here.
  bool is_fetching() const { return !awaited_.empty() || fetching_ > 0; }
  // One that was being fetched is, or will not be.
  void note_landed() { --fetching_; }
  std::size_t unread() const { return unread_; }

  // Nothing comes any more: what follows the first missing payload is forgotten, or everything.
  void forget_missing();
  void clear();

 private:
  struct Range {
    const std::byte* at;  // null: where the landing is
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
