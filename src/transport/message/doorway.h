// SPDX-License-Identifier: Apache-2.0
// Accepts connections that peers make, and serves their requests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/message/connection.h"
#include "transport/message/message_core.h"
#include "transport/message/owner_side.h"

namespace memspan {

// All functions require the turn.
class Doorway final : public Source {
 public:
  Doorway(MessageCore& core, OwnerServices& services, std::unique_ptr<Listener> listener);
  ~Doorway() override;

  // The engine watches it from now on.
  Status start(const std::shared_ptr<Doorway>& self);
  std::string address() const { return listener_->address(); }
  // Over the last connection that the peer has made. kPeerLost: it has none.
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
  class Incoming;

  void take(std::unique_ptr<ByteStream> stream);
  void forget(const Incoming& one);

  MessageCore& core_;
  Engine& engine_;
  OwnerServices& services_;
  const std::unique_ptr<Listener> listener_;
  Engine::Id id_ = 0;
  std::vector<std::unique_ptr<Incoming>> incoming_;
};

}  // namespace memspan
