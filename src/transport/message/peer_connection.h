// SPDX-License-Identifier: Apache-2.0
// A connection with a peer, whichever of the two processes has made it. It serves the peer's
// requests (OwnerSide) and carries those of at most one requester of this process. The type of a
// frame says which of them takes it. Greetings, goodbyes and signs of life are its own.
//
//   hello ──welcome──► open ──both have said bye──► closed by its maker
//     └─────yield────► yielded: closed by its maker once the peer's own connection is open
//
// Two processes that connect to each other at once need one connection: the process with the higher
// number yields. A process can claim any number. So its greeting has a proof, and requests are
// carried only to the process whose address the requester has.
#pragma once

#include "transport/message/connection.h"
#include "transport/message/message_core.h"
#include "transport/message/owner_side.h"

namespace memspan {

// All functions require the turn.
class PeerConnection final : public ConnectionOwner, public AnswerSink {
 public:
  // This process makes it for the requester; null: a peer has made it. `secret`: of the process
  // that accepts.
  PeerConnection(MessageCore& core, std::unique_ptr<ByteStream> stream, Requester* requester,
                 const SipKey& secret);
  ~PeerConnection() override;

  // Greets, if this process makes it.
  Status start();
  // -1 before the peer has greeted.
  int peer() const { return peer_; }
  bool is_open() const { return state_ == State::kOpen; }
  // This process has refused the peer's connection in favor of its own.
  bool has_yielded_peer() const { return state_ == State::kYielded && !is_made_; }
  bool has_requester() const { return requester_ != nullptr; }
  // Whether no requester of this process has used it yet.
  bool is_free() const { return is_open() && requester_ == nullptr && !asks_no_more_; }
  // Whether neither side requests anything more.
  bool is_over() const { return asks_no_more_ && peer_asks_no_more_; }
  // Whether the peer is the owner of that secret.
  bool is_of(const SipKey& secret) const;
  Connection& connection() { return *connection_; }

  void carry(Requester& requester) {
    requester_ = &requester;
    connection_->expect_life();
  }
  // The requester requests nothing more. The peer may.
  void release();
  // This process ends.
  void leave() {
    if (is_open()) say_goodbye(kLeaves);
  }
  void close() { connection_->close(); }

  // Destroys this.
  void on_end(const Status& why) override;
  Status after_look() override;

  Status begin(const Frame& frame) override;
  std::byte* pin() override;
  void unpin() override {
    if (sink_ != nullptr) sink_->unpin();
  }
  Status end(const Frame& frame) override;
  void on_stranger(const Status& why) override;
  bool must_wait(FrameType type) override { return side_.must_wait(type); }

  Status answer(const Frame& frame, std::span<const std::byte> payload) override;
  void deliver(const MessageTag& tag, Buffer bytes) override;
  bool is_delivered() override;

 private:
  enum class State { kGreeting, kYielded, kOpen };

  bool is_expected(FrameType type) const;
  Status greet(const Frame& frame);
  Status admit(const Hello& hello);
  Requester* find_connecting(const Hello& hello) const;
  Status open();
  void await_greeting(Duration limit);
  void say_goodbye(std::uint8_t flags);

  MessageCore& core_;
  OwnerSide side_;
  const std::shared_ptr<Connection> connection_;  // shared with the engine
  const bool is_made_;                            // by this process
  const SipKey secret_;                           // of the process that accepts
  int peer_ = -1;
  std::string name_;
  std::uint64_t proof_ = 0;  // by the peer, if it has made it
  State state_ = State::kGreeting;
  Deadline greets_until_ = Deadline::never();
  Requester* requester_;
  bool asks_no_more_ = false;
  bool peer_asks_ = false;  // so that its end is a loss
  bool peer_asks_no_more_ = false;
  bool peer_leaves_ = false;
  FrameSink* sink_ = nullptr;  // of the current frame; null: this, or it is discarded
  Buffer text_;                // of the greeting
  const std::shared_ptr<Backlog> backlog_ = std::make_shared<Backlog>();  // shared with deliveries
};

}  // namespace memspan
