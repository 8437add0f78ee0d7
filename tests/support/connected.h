// SPDX-License-Identifier: Apache-2.0
// The connection of a carrier, waited for.
#pragma once

#include <poll.h>

#include <memory>
#include <string>

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
    ::poll(&one, 1, deadline.within(kStreamWait).until(opening->next()).remaining_poll_ms());
  }
}

}  // namespace memspan
