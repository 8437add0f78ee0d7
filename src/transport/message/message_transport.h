// SPDX-License-Identifier: Apache-2.0
// Reaches memory of any process that accepts connections, by the library's own protocol
// (docs/transports.md). The owner applies the frames of a connection in order. It checks region,
// generation, bounds, width and alignment before it touches anything.
//
// One engine serves all connections (engine.h): on the thread of a call that waits, or else on its
// own thread, asleep in epoll.
#pragma once

#include "core/bytes.h"
#include "node/wait.h"
#include "transport/link.h"
#include "transport/message/carrier.h"
#include "transport/message/faults.h"

namespace memspan::inline transport {

class MessageCore;

// The peer of a link. A value.
struct PeerAddress {
  int peer = 0;
  std::string name;     // for messages: "PE 3 on host b"
  std::string address;  // result of MessageTransport::address() in that process
};

// Each may be empty. The engine's thread calls the first three, or a thread in progress(), one at a
// time and in order, without a lock. They must not wait for a peer, but may use Link::post and
// MessageTransport::connect.
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
  // A connected peer that is silent for so long is lost (connection.h); Duration::max(): never.
  Duration silence_limit = Duration::max();
};

// Memory of this process that peers may reach. Destruction retracts it: later accesses do not touch
// the memory and return kStale. It must not outlive its transport.
class ExposedRegion : NotCopyable {
 public:
  ~ExposedRegion();
  const RemoteRegion& describe() const { return described_; }

 private:
  friend class MessageTransport;
  ExposedRegion(MessageCore& core, RemoteRegion described, std::byte* base)
      : core_(core), described_(std::move(described)), base_(base) {}

  MessageCore& core_;
  const RemoteRegion described_;
  std::byte* const base_;
};

// Thread-safe.
class MessageTransport : NotCopyable {
 public:
  // Listens and starts the engine.
  static Result<std::unique_ptr<MessageTransport>> make(MessageOptions options);
  // Says goodbye to the peers.
  ~MessageTransport();

  // The address for connect() of a peer. It contains a secret of 128 bits, which admits a process;
  // give it only to peers.
  std::string address() const;
  Result<std::unique_ptr<ExposedRegion>> expose(const LocalRegion& region);
  // Cheap: the first use does the slow work. The link must not outlive the transport.
  std::unique_ptr<Link> connect(const PeerAddress& peer);
  // Ends all connections with the peer. Calls that wait for it, and later uses of its links, return
  // kPeerLost with that reason. Does not call on_peer_lost. Never blocks.
  void lose(int peer, const Status& why);
  // lose(), and admits no connection with that number again. No later frame of the peer is applied,
  // except one that is being received.
  void exclude(int peer, const Status& why);
  // Posts a message over a connection with the peer, whichever process has made it: an answer to
  // one of its messages. Never waits. kPeerLost: the peer has no connection.
  Status post_back(int peer, const MessageTag& tag, std::span<const std::byte> bytes);
  // Calls it as a handler, not before that time. Any thread.
  void call_at(Clock::time_point when, std::function<void()> call);
  // No handler begins after it; waits for one of another thread. Messages that arrive later are
  // dropped.
  void end_handlers();
  ProgressEngine& engine();
  // Tests read its counters.
  const MessageCore& core() const { return *core_; }
  // In a child of fork(): gives up everything by which peers could mistake the child for this
  // process. The transport and its links are unusable in the child.
  void forget_in_child();

 private:
  explicit MessageTransport(MessageOptions options);

  const std::string secret_;  // as text
  const std::unique_ptr<MessageCore> core_;
  bool is_forgotten_ = false;
};

}  // namespace memspan::inline transport
