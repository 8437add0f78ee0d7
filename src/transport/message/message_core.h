// SPDX-License-Identifier: Apache-2.0
// State that the links and connections of one transport `message` share, and all its connections.
// It accepts those that peers make.
#pragma once

#include <set>

#include "transport/message/deliveries.h"
#include "transport/message/owner_side.h"

namespace memspan::inline transport {

struct OutFrame;
class PeerConnection;
class Requester;

// Thread-safe. Outlives all its users.
class MessageCore final : public Source {
 public:
  MessageCore(MessageOptions given, const SipKey& own_secret);
  ~MessageCore() override;

  MessageOptions options;
  const SipKey secret;  // of this process as an owner
  OwnerServices services;
  std::atomic<std::uint64_t> connections_made{0};
  std::atomic<std::uint64_t> native_puts{0};
  std::atomic<std::uint64_t> native_gets{0};
  std::atomic<bool> ends{false};  // the transport is being destroyed: report no more losses
  std::unique_ptr<Engine> engine;
  Deliveries deliveries{options.handlers, engine};

  // Calls it as a handler, not before that time.
  void call_at(Clock::time_point when, std::function<void()> call);

  // The rest requires the turn.
  std::set<Nonce> nonces;                     // of accepted greetings
  std::multimap<int, Requester*> requesters;  // that have a link, by number
  // Peers that are no longer admitted. The set only grows: a number belongs to one peer forever.
  std::set<int> excluded;

  void forget_requester(int number, const Requester* one);
  // Reports "PE 3 on host b: why" or a goodbye to the handler, unless the transport ends.
  void tell_end(int peer, const Status& why, LinkState end);

  // The engine watches for connections from now on.
  Status listen(std::unique_ptr<Listener> listener);
  std::string address() const { return listener_->address(); }
  // Starts it (PeerConnection::start), and owns it.
  Result<PeerConnection*> add(std::unique_ptr<PeerConnection> fresh);
  // Destroys it.
  void forget(const PeerConnection& one);
  // One that is open with the owner of that secret, free if there is such a one; or null.
  PeerConnection* find(int peer, const SipKey& secret) const;
  // The peer has to make its connection after all: this process makes none.
  void stop_yielding(int peer);
  // Over any connection with the peer. kPeerLost: the peer has no connection.
  Status post(int peer, const OutFrame& out);
  // Ends the links and the connections with the peer, and reports nothing.
  void lose(int peer, const Status& why);
  // Accepts no more, and says goodbye to all peers.
  void close();

  void on_ready(std::uint32_t events) override;
  bool look() override;

 private:
  void accept();

  std::unique_ptr<Listener> listener_;
  Engine::Id id_ = 0;
  std::multimap<Clock::time_point, std::function<void()>> calls_;
  std::vector<std::unique_ptr<PeerConnection>> connections_;
};

}  // namespace memspan::inline transport
