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

#include <fmt/format.h>

#include "core/log.h"
#include "transport/message/connection.h"
#include "transport/message/message_core.h"
#include "transport/message/owner_side.h"
#include "transport/message/requester.h"

namespace memspan::inline transport {

// All functions require the turn.
class PeerConnection final : public ConnectionOwner, public AnswerSink {
 public:
  // This process makes it for the requester; null: a peer has made it. `secret`: of the process
  // that accepts.
  PeerConnection(MessageCore& core, std::unique_ptr<ByteStream> stream, Requester* requester,
                 const SipKey& secret)
      : core_(core),
        side_(core.services, *this),
        connection_(std::make_shared<Connection>(
            core, std::move(stream),
            requester == nullptr ? Session::accepting(secret) : Session::connecting(secret),
            *this)),
        is_made_(requester != nullptr),
        secret_(secret),
        requester_(requester) {
    if (requester == nullptr) return;
    peer_ = requester->number();
    name_ = requester->name();
  }

  // Later the engine is gone, or belongs to another process.
  ~PeerConnection() override {
    if (!core_.ends.load(std::memory_order_acquire)) connection_->close();
  }

  // Greets, if this process makes it.
  Status start() {
    MEMSPAN_PASS(connection_->start());
    backlog_->connection = connection_->id();
    // A peer that does not answer is silent (Heartbeat).
    await_greeting(is_made_ ? core_.options.silence_limit : kGreetingTime);
    if (!is_made_) return Status::ok();
    const Session& session = connection_->session();
    const Hello hello{.peer = core_.options.self,
                      .name = core_.options.name,
                      .nonce = session.nonce(),
                      .proof = session.proof(core_.secret),
                      .is_apart = requester_->connects_to() == nullptr};
    const std::string text = hello.payload();
    const OutFrame greeting{hello.frame(), text.data()};
    return connection_->submit_control(greeting);
  }

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
  bool is_of(const SipKey& secret) const {
    return is_made_ ? secret_ == secret : proof_ == connection_->session().proof(secret);
  }
  Connection& connection() { return *connection_; }

  void carry(Requester& requester) {
    requester_ = &requester;
    connection_->expect_life();
  }
  // The requester requests nothing more. The peer may.
  void release() {
    if (sink_ == requester_) sink_ = nullptr;
    requester_ = nullptr;
    say_goodbye(0);
    connection_->call_again();
  }

  // This process ends.
  void leave() {
    if (is_open()) say_goodbye(kLeaves);
  }
  void close() { connection_->close(); }

  // Destroys this.
  void on_end(const Status& why) override {
    const bool is_cut = why.code() == Code::kPeerLost;
    if (!is_cut && (is_open() || !is_made_))
      core_.services.counters.broken.fetch_add(1, std::memory_order_relaxed);
    if (requester_ != nullptr && state_ == State::kYielded && is_cut)
      requester_->connect_again();
    else if (requester_ != nullptr)
      requester_->on_end(why, peer_leaves_ && is_cut ? LinkState::kLeft : LinkState::kLost);
    else if (peer_asks_)
      core_.tell_end(peer_, {Code::kPeerLost, fmt::format("{}: {}", name_, why.message())},
                     LinkState::kLost);
    core_.forget(*this);
  }

  Status after_look() override {
    const MessageHandlers& handlers = core_.options.handlers;
    if (side_.take_applied() && handlers.after_apply) handlers.after_apply();
    if (!is_open() && greets_until_.has_passed())
      return {peer_ < 0 ? Code::kAuth : Code::kPeerLost, "it has not greeted in time"};
    if (is_made_ && requester_ == nullptr && (is_over() || state_ == State::kYielded) &&
        !connection_->has_unsent())
      return {Code::kPeerLost, "neither side uses it"};
    return Status::ok();
  }

  Status begin(const Frame& frame) override {
    sink_ = nullptr;
    if (!is_expected(frame.type))
      return {Code::kInvalidArgument,
              fmt::format("it sends type {} at the wrong time", static_cast<int>(frame.type))};
    if (frame.type == FrameType::kHello) text_ = Buffer(frame.payload);
    if (is_answer(frame.type)) sink_ = requester_;
    if (is_request(frame.type)) {
      sink_ = &side_;
      peer_asks_ = !peer_asks_no_more_;
    }
    return sink_ == nullptr ? Status::ok() : sink_->begin(frame);
  }

  std::byte* pin() override {
    if (text_.size() != 0) return text_.data();
    return sink_ == nullptr ? nullptr : sink_->pin();
  }
  void unpin() override {
    if (sink_ != nullptr) sink_->unpin();
  }
  Status end(const Frame& frame) override {
    switch (frame.type) {
      case FrameType::kHello:
        return greet(frame);
      case FrameType::kWelcome:
        return open();
      case FrameType::kYield:
        state_ = State::kYielded;
        await_greeting(core_.options.connect_limit);
        return Status::ok();
      case FrameType::kBye:
        peer_asks_ = false;
        peer_asks_no_more_ = true;
        peer_leaves_ = (frame.flags & kLeaves) != 0;
        if (is_free()) say_goodbye(0);
        return Status::ok();
      case FrameType::kBeat:
        return connection_->take_beat();
      case FrameType::kAlive:
        return Status::ok();
      default:
        return sink_ == nullptr ? Status::ok() : sink_->end(frame);
    }
  }

  void on_stranger(const Status& why) override {
    [[maybe_unused]] const Status told =
        side_.refuse({.type = FrameType::kHello}, {Refusal::kHello, why.message()});
  }
  bool must_wait(FrameType type) override { return side_.must_wait(type); }

  Status answer(const Frame& frame, std::span<const std::byte> payload) override {
    const OutFrame out{frame, payload.data()};
    return connection_->submit({&out, 1}, nullptr);
  }
  void deliver(const MessageTag& tag, Buffer bytes) override {
    core_.deliveries.add_message(peer_, tag, std::move(bytes), backlog_);
  }
  bool is_delivered() override {
    if (backlog_->count.load() == 0) return true;
    backlog_->is_awaited.store(true);
    return backlog_->count.load() == 0;  // handled just now
  }

 private:
  // A caller that does not greet in this time is not a peer.
  static constexpr auto kGreetingTime = std::chrono::seconds(10);

  static OutFrame frame_of(FrameType type, std::uint8_t flags = 0) {
    return {{.type = type, .flags = flags}, nullptr};
  }

  enum class State { kGreeting, kYielded, kOpen };

  bool is_expected(FrameType type) const {
    const bool is_greeting = state_ == State::kGreeting;
    if (type == FrameType::kHello) return is_greeting && !is_made_;
    if (type == FrameType::kWelcome || type == FrameType::kYield) return is_greeting && is_made_;
    if (type == FrameType::kBye) return !is_greeting;
    if (is_greeting) return is_made_ && type == FrameType::kRefused;
    return is_open() && (!is_answer(type) || requester_ != nullptr || asks_no_more_);
  }

  Status greet(const Frame& frame) {
    const auto hello = Hello::read(frame, text_);
    text_ = {};
    Status admitted = hello.is_ok() ? admit(*hello) : hello.status();
    if (!admitted.is_ok()) {
      // Reports the reason to the peer; then the connection ends.
      MEMSPAN_PASS(side_.refuse(frame, {Refusal::kHello, admitted.message()}));
      return admitted;
    }
    peer_ = hello->peer;
    name_ = hello->name;
    proof_ = hello->proof;
    Requester* const waiting = find_connecting(*hello);
    if (waiting != nullptr && core_.options.self < peer_) {
      state_ = State::kYielded;
      return connection_->submit_control(frame_of(FrameType::kYield));
    }
    state_ = State::kOpen;
    peer_asks_ = true;
    MEMSPAN_PASS(connection_->submit_control(frame_of(FrameType::kWelcome)));
    return waiting == nullptr ? Status::ok() : waiting->open(*this);
  }

  // Ok, or kAuth.
  Status admit(const Hello& hello) {
    if (!core_.nonces.insert(hello.nonce).second)
      return {Code::kAuth, "it repeats the greeting of another connection"};
    if (core_.excluded.contains(hello.peer)) return {Code::kAuth, "it is not a member any more"};
    if (hello.protocol == kProtocolVersion) return Status::ok();
    const std::string why = fmt::format("{} runs memspan {}, and {} runs memspan " MEMSPAN_VERSION
                                        ": processes of a job must have the same version",
                                        hello.name, hello.version, core_.options.name);
    core_.deliveries.add_call([why] { log_line(LogLevel::kWarn, why); });
    return {Code::kAuth, why};
  }

  // The requester of this process that is connecting to the same peer, if one connection is enough.
  Requester* find_connecting(const Hello& hello) const {
    if (hello.is_apart || peer_ == core_.options.self) return nullptr;
    const auto [begin, end] = core_.requesters.equal_range(peer_);
    for (auto one = begin; one != end; ++one)
      if (const SipKey* secret = one->second->connects_to(); secret != nullptr && is_of(*secret))
        return one->second;
    return nullptr;
  }

  Status open() {
    state_ = State::kOpen;
    if (requester_ == nullptr) return Status::ok();
    core_.connections_made.fetch_add(1, std::memory_order_relaxed);
    return requester_->open(*this);
  }

  void await_greeting(Duration limit) {
    if (limit == Duration::max()) return;
    greets_until_ = Deadline::after(limit);
    connection_->wake_at(greets_until_.when());
  }

  void say_goodbye(std::uint8_t flags) {
    asks_no_more_ = true;
    static_cast<void>(connection_->submit_control(frame_of(FrameType::kBye, flags)).is_ok());
  }

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

}  // namespace memspan::inline transport
