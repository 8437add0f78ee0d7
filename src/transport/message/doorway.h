// SPDX-License-Identifier: Apache-2.0
// All connections with peers. It accepts those that peers make.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/message/peer_connection.h"

namespace memspan {

// All functions require the turn.
class Doorway final : public Source {
 public:
  Doorway(MessageCore& core, std::unique_ptr<Listener> listener);
  ~Doorway() override;

  // The engine watches it from now on.
  Status start(const std::shared_ptr<Doorway>& self);
  std::string address() const { return listener_->address(); }
  // Starts it (PeerConnection::start), and owns it.
  Result<PeerConnection*> add(std::unique_ptr<PeerConnection> fresh, std::uint8_t flags);
  // Destroys it.
  void forget(const PeerConnection& one);
  // One that is open with the owner of that secret, free if there is such a one; or null.
  PeerConnection* find(int peer, const SipKey& secret) const;
  // The peer has to make its connection after all: this process makes none.
  void stop_yielding(int peer);
  // Over any connection with the peer. kPeerLost: the peer has no connection.
  Status post(int peer, const OutFrame& out);
  // Ends the connections with the peer, and reports nothing.
  void lose(int peer);
  // The handler has handled all messages of that connection.
  void on_delivered(const Backlog* backlog);
  // Accepts no more, and says goodbye to all peers.
  void close();

  void on_ready(std::uint32_t events) override;
  bool look() override;

 private:
  void take(std::unique_ptr<ByteStream> stream);

  MessageCore& core_;
  Engine& engine_;
  const std::unique_ptr<Listener> listener_;
  Engine::Id id_ = 0;
  std::vector<std::unique_ptr<PeerConnection>> connections_;
};

}  // namespace memspan
