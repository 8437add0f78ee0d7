// SPDX-License-Identifier: Apache-2.0
#include "transport/message/peer_connection.h"

#include <fmt/format.h>

#include "core/log.h"
#include "transport/message/requester.h"

namespace memspan {
namespace {

// A caller that does not greet in this time is not a peer.
constexpr auto kGreetingTime = std::chrono::seconds(10);

OutFrame frame_of(FrameType type, std::uint8_t flags = 0) {
  return {{.type = type, .flags = flags}, nullptr};
}

}  // namespace

PeerConnection::PeerConnection(MessageCore& core, std::unique_ptr<ByteStream> stream,
                               Requester* requester, const SipKey& secret)
    : core_(core),
      side_(core.services, *this),
      connection_(std::make_shared<Connection>(
          core, std::move(stream),
          requester == nullptr ? Session::accepting(secret) : Session::connecting(secret), *this)),
      is_made_(requester != nullptr),
      secret_(secret),
      requester_(requester) {
  if (!is_made_) return;
  peer_ = requester->number();
  name_ = requester->name();
}

// Later the engine is gone, or belongs to another process.
PeerConnection::~PeerConnection() {
  if (!core_.ends.load(std::memory_order_acquire)) connection_->close();
}

Status PeerConnection::start() {
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

void PeerConnection::await_greeting(Duration limit) {
  if (limit == Duration::max()) return;
  greets_until_ = Deadline::after(limit);
  connection_->wake_at(greets_until_.when());
}

bool PeerConnection::is_of(const SipKey& secret) const {
  return is_made_ ? secret_ == secret : proof_ == connection_->session().proof(secret);
}

// ---- greetings

Status PeerConnection::greet(const Frame& frame) {
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
Status PeerConnection::admit(const Hello& hello) {
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
Requester* PeerConnection::find_connecting(const Hello& hello) const {
  if (hello.is_apart || peer_ == core_.options.self) return nullptr;
  const auto [begin, end] = core_.requesters.equal_range(peer_);
  for (auto one = begin; one != end; ++one)
    if (const SipKey* secret = one->second->connects_to(); secret != nullptr && is_of(*secret))
      return one->second;
  return nullptr;
}

Status PeerConnection::open() {
  state_ = State::kOpen;
  if (requester_ == nullptr) return Status::ok();
  core_.connections_made.fetch_add(1, std::memory_order_relaxed);
  return requester_->open(*this);
}

void PeerConnection::on_stranger(const Status& why) {
  [[maybe_unused]] const Status told =
      side_.refuse({.type = FrameType::kHello}, {Refusal::kHello, why.message()});
}

// ---- frames

bool PeerConnection::is_expected(FrameType type) const {
  const bool is_greeting = state_ == State::kGreeting;
  if (type == FrameType::kHello) return is_greeting && !is_made_;
  if (type == FrameType::kWelcome || type == FrameType::kYield) return is_greeting && is_made_;
  if (type == FrameType::kBye) return !is_greeting;
  if (is_greeting) return is_made_ && type == FrameType::kRefused;
  return is_open() && (!is_answer(type) || requester_ != nullptr || asks_no_more_);
}

Status PeerConnection::begin(const Frame& frame) {
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

std::byte* PeerConnection::pin() {
  if (text_.size() != 0) return text_.data();
  return sink_ == nullptr ? nullptr : sink_->pin();
}

Status PeerConnection::end(const Frame& frame) {
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

Status PeerConnection::answer(const Frame& frame, std::span<const std::byte> payload) {
  const OutFrame out{frame, payload.data()};
  return connection_->submit({&out, 1}, nullptr);
}

void PeerConnection::deliver(const MessageTag& tag, Buffer bytes) {
  core_.deliveries.add_message(peer_, tag, std::move(bytes), backlog_);
}

bool PeerConnection::is_delivered() {
  if (backlog_->count.load() == 0) return true;
  backlog_->is_awaited.store(true);
  return backlog_->count.load() == 0;  // handled just now
}

// ---- ends

void PeerConnection::say_goodbye(std::uint8_t flags) {
  asks_no_more_ = true;
  static_cast<void>(connection_->submit_control(frame_of(FrameType::kBye, flags)).is_ok());
}

void PeerConnection::release() {
  if (sink_ == requester_) sink_ = nullptr;
  requester_ = nullptr;
  say_goodbye(0);
  connection_->call_again();
}

Status PeerConnection::after_look() {
  const MessageHandlers& handlers = core_.options.handlers;
  if (side_.take_applied() && handlers.after_apply) handlers.after_apply();
  if (!is_open() && greets_until_.has_passed())
    return {peer_ < 0 ? Code::kAuth : Code::kPeerLost, "it has not greeted in time"};
  if (is_made_ && requester_ == nullptr && (is_over() || state_ == State::kYielded) &&
      !connection_->has_unsent())
    return {Code::kPeerLost, "neither side uses it"};
  return Status::ok();
}

void PeerConnection::on_end(const Status& why) {
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

}  // namespace memspan
