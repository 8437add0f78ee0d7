// SPDX-License-Identifier: Apache-2.0
// The link to one peer by messages. Operations are frames, except large puts and gets if the
// build and the carrier have a better way (native_path.h).
#pragma once

#include "transport/link.h"
#include "transport/message/requester.h"

namespace memspan {

std::unique_ptr<Link> make_message_link(MessageCore& core, const PeerAddress& address);

// kInvalidArgument: it is too long. The bytes are not copied.
Result<OutFrame> message_frame(const MessageTag& tag, std::span<const std::byte> bytes);

}  // namespace memspan
