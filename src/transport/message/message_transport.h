// SPDX-License-Identifier: Apache-2.0
// Memory of any process that a connection can be made to, by the library's own protocol
// (docs/transports.md). Frames of a connection are applied in order by the owner of the memory, who
// checks region, generation, bounds, width and alignment before it touches anything.
//
// Each process has one progress thread, asleep in epoll, which serves the peers whatever the
// process does. A thread that waits for an answer receives it itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.h"
#include "core/clock.h"
#include "transport/message/carrier.h"
#include "transport/message/faults.h"
#include "transport/transport.h"

namespace memspan {

// Each may be empty. They are called by the progress thread or by a thread in a call of the
// transport or its links, without any of its locks. They must not wait for a peer; Link::send and
// Transport::connect are fine in them. Those of one peer's messages never overlap.
struct MessageHandlers {
  std::function<void(int peer, const MessageTag& tag, Buffer bytes)> on_message;
  // A connection with the peer ended without a goodbye. May come more than once for a peer.
  std::function<void(int peer, const Status& why)> on_peer_lost;
  // A link's peer has ended with a goodbye.
  std::function<void(int peer)> on_peer_left;
  // Puts, atomics or messages of a peer were applied: who waits for words may look again.
  std::function<void()> after_apply;
};

struct MessageOptions {
  std::unique_ptr<Carrier> carrier;
  int self = 0;      // what peers call this process, as in PeerAddress::peer
  std::string name;  // for messages: "PE 3 on host b"
  MessageHandlers handlers = {};
  std::shared_ptr<Faults> faults = {};  // null: none
  Duration connect_limit = std::chrono::seconds(10);
  // A peer with a connection that gives no sign of life for so long is lost (heartbeat.h);
  // Duration::max(): never.
  Duration silence_limit = Duration::max();
};

// A number for people (memspan-info). A value.
struct MessageCounter {
  std::string_view name;
  std::uint64_t value = 0;
};

class MessageTransport : public Transport {
 public:
  // Ends all connections with the peer. Who waits for it, and who uses a link to it later, gets
  // kPeerLost with that reason. on_peer_lost is not called for it. Never blocks.
  virtual void lose(int peer, const Status& why) = 0;
  // lose(), and lets nobody in by that number again: nothing that the peer sends is applied any
  // more, but for a frame that is being received.
  virtual void exclude(int peer, const Status& why) = 0;
  // Frames and refusals by kind, of this process.
  virtual std::vector<MessageCounter> counters() const = 0;
};

// Listens, and starts the progress thread. When it is destroyed the peers are told goodbye. Its
// address() has a secret of 128 bits in it, which is what lets a process in; give it only to peers.
Result<std::unique_ptr<MessageTransport>> make_message_transport(MessageOptions options);

}  // namespace memspan
