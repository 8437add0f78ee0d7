// SPDX-License-Identifier: Apache-2.0
// The connection of a carrier, waited for.
#pragma once

#include <poll.h>

#include <memory>
#include <span>
#include <string>
#include <thread>

#include "transport/message/carrier.h"

namespace memspan {

inline Result<std::unique_ptr<ByteStream>> connected(
    Carrier& carrier, const std::string& address,
    const Deadline& deadline = Deadline::after(std::chrono::seconds(10))) {
  MEMSPAN_TRY_ASSIGN(const std::unique_ptr<Opening> opening, carrier.connect(address),
                     "connecting");
  while (true) {
    auto stream = opening->step();
    if (!stream.is_ok() || *stream != nullptr) return stream;
    if (deadline.has_passed()) return Status(Code::kTimeout, address + ": it does not answer");
    pollfd one{opening->descriptor(), POLLIN | POLLOUT, 0};
    ::poll(
        &one, 1,
        deadline.within(std::chrono::milliseconds(20)).until(opening->next()).remaining_poll_ms());
  }
}

// Repeats a receive() or send() for a moment if it moves nothing.
inline ssize_t moved_shortly(auto move) {
  const Deadline deadline = Deadline::after(std::chrono::milliseconds(20));
  ssize_t moved = 0;
  while ((moved = move()) == 0 && !deadline.has_passed()) std::this_thread::yield();
  return moved;
}
inline ssize_t receive_shortly(ByteStream& stream, std::span<const iovec> to) {
  return moved_shortly([&] { return stream.receive(to); });
}
inline ssize_t send_shortly(ByteStream& stream, std::span<const iovec> from) {
  return moved_shortly([&] { return stream.send(from); });
}

}  // namespace memspan
