// SPDX-License-Identifier: Apache-2.0
// Reaches memory of any process that accepts connections, by the library's own protocol
// (docs/transports.md). The owner applies the frames of a connection in order. It checks region,
// generation, bounds, width and alignment before it touches anything.
//
// One engine serves all connections (engine.h): on the thread of a call that waits, or else on its
// own thread, asleep in epoll.
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

// Each may be empty. The engine's thread calls the first three, or a thread in progress(), one at a
// time and in order, without a lock. They must not wait for a peer, but may use Link::post and
// Transport::connect.
struct MessageHandlers {
  std::function<void(int peer, const MessageTag& tag, Buffer bytes)> on_message;
  // A connection with the peer ended without a goodbye. May be called again for a peer.
  std::function<void(int peer, const Status& why)> on_peer_lost;
  // A link's peer has ended with a goodbye.
  std::function<void(int peer)> on_peer_left;
  // Puts or atomics of a peer were applied: threads that wait for words may look again. Called with
  // the engine's lock: it must not use the transport.
  std::function<void()> after_apply;
};

struct MessageOptions {
  std::unique_ptr<Carrier> carrier;
  int self = 0;      // what peers call this process, as in PeerAddress::peer
  std::string name;  // for messages: "PE 3 on host b"
  MessageHandlers handlers = {};
  std::shared_ptr<Faults> faults = {};  // null: none
  Duration connect_limit = std::chrono::seconds(10);
  // A connected peer that is silent for so long is lost (heartbeat.h); Duration::max(): never.
  Duration silence_limit = Duration::max();
};

// A number for memspan-info. A value.
struct MessageCounter {
  std::string_view name;
  std::uint64_t value = 0;
};

class MessageTransport : public Transport {
 public:
  // Ends all connections with the peer. Calls that wait for it, and later uses of its links, return
  // kPeerLost with that reason. Does not call on_peer_lost. Never blocks.
  virtual void lose(int peer, const Status& why) = 0;
  // lose(), and admits no connection with that number again. No later frame of the peer is applied,
  // except one that is being received.
  virtual void exclude(int peer, const Status& why) = 0;
  // Posts a message over a connection with the peer, whichever process has made it: an answer to
  // one of its messages. Never waits. kPeerLost: the peer has no connection.
  virtual Status post_back(int peer, const MessageTag& tag, std::span<const std::byte> bytes) = 0;
  // Calls it as a handler, not before that time. Any thread.
  virtual void call_at(Clock::time_point when, std::function<void()> call) = 0;
  // No handler begins after it; waits for one of another thread. Messages that arrive later are
  // dropped.
  virtual void end_handlers() = 0;
  // Frames and refusals by kind, of this process.
  virtual std::vector<MessageCounter> counters() const = 0;
};

// Listens and starts the engine. Destruction says goodbye to the peers. The address()
// contains a secret of 128 bits, which admits a process; give it only to peers.
Result<std::unique_ptr<MessageTransport>> make_message_transport(MessageOptions options);

}  // namespace memspan
