// SPDX-License-Identifier: Apache-2.0
#include "transport/message/message_core.h"

#include "transport/message/peer_connection.h"

namespace memspan::inline transport {
namespace {

// Connections that have not greeted: more than any job starts at once, fewer than the limit of
// descriptors.
constexpr std::size_t kMostPending = 256;

}  // namespace

MessageCore::MessageCore(MessageOptions given, const SipKey& own_secret)
    : options(std::move(given)), secret(own_secret) {
  services.native = options.carrier->native();
}

MessageCore::~MessageCore() = default;

void MessageCore::call_at(Clock::time_point when, std::function<void()> call) {
  const Turn turn(*engine);
  calls_.emplace(when, std::move(call));
  engine->wake_at(id_, when);
}

void MessageCore::forget_requester(int number, const Requester* one) {
  auto [found, end] = requesters.equal_range(number);
  while (found != end && found->second != one) ++found;
  if (found != end) requesters.erase(found);
}

void MessageCore::tell_end(int peer, const Status& why, LinkState end) {
  if (ends.load(std::memory_order_acquire)) return;
  const bool has_left = end == LinkState::kLeft;
  deliveries.add_call([this, peer, why, has_left] {
    const MessageHandlers& handlers = options.handlers;
    if (has_left && handlers.on_peer_left) handlers.on_peer_left(peer);
    if (!has_left && handlers.on_peer_lost) handlers.on_peer_lost(peer, why);
  });
}

Status MessageCore::listen(std::unique_ptr<Listener> listener) {
  engine->assert_turn();
  listener_ = std::move(listener);
  // The engine, which this owns, does not own it.
  MEMSPAN_TRY_ASSIGN(
      id_,
      engine->add(listener_->descriptor(), std::shared_ptr<Source>(std::shared_ptr<void>(), this)),
      "the transport \"message\": listening");
  engine->watch(id_, EPOLLIN);
  if (listener_->moves_streams())
    engine->set_prepare_sleep(id_, [this] { return listener_->prepare_sleep(); });
  return Status::ok();
}

void MessageCore::on_ready(std::uint32_t) {
  accept();
  const auto later = calls_.upper_bound(Clock::now());
  for (auto due = calls_.begin(); due != later; ++due) deliveries.add_call(std::move(due->second));
  calls_.erase(calls_.begin(), later);
}

bool MessageCore::look() {
  if (listener_->moves_streams()) accept();
  return false;
}

void MessageCore::accept() {
  const auto is_pending = [](const auto& one) { return one->peer() < 0; };
  while (std::unique_ptr<ByteStream> stream = listener_->accept()) {
    if (std::count_if(connections_.begin(), connections_.end(), is_pending) >=
        static_cast<std::ptrdiff_t>(kMostPending))
      connections_.erase(std::find_if(connections_.begin(), connections_.end(), is_pending));
    static_cast<void>(
        add(std::make_unique<PeerConnection>(*this, std::move(stream), nullptr, secret)).is_ok());
  }
}

Result<PeerConnection*> MessageCore::add(std::unique_ptr<PeerConnection> fresh) {
  MEMSPAN_PASS(fresh->start());
  connections_.push_back(std::move(fresh));
  return connections_.back().get();
}

void MessageCore::forget(const PeerConnection& one) {
  std::erase_if(connections_, [&](const auto& other) { return other.get() == &one; });
}

PeerConnection* MessageCore::find(int peer, const SipKey& its_secret) const {
  PeerConnection* found = nullptr;
  for (const auto& one : connections_)
    if (one->peer() == peer && one->is_open() && one->is_of(its_secret) &&
        (found == nullptr || one->is_free()))
      found = one.get();
  return found;
}

void MessageCore::stop_yielding(int peer) {
  std::erase_if(connections_,
                [&](const auto& one) { return one->peer() == peer && one->has_yielded_peer(); });
}

// Prefers one with a requester: its peer has proved its identity.
Status MessageCore::post(int peer, const OutFrame& out) {
  PeerConnection* found = nullptr;
  for (const auto& one : connections_)
    if (one->peer() == peer && one->is_open() && !one->is_over() &&
        (found == nullptr || !found->has_requester()))
      found = one.get();
  if (found == nullptr) return {Code::kPeerLost, "it has no connection to this process"};
  Status sent = found->connection().submit_control(out);
  if (!sent.is_ok()) found->on_end(sent);
  return sent;
}

void MessageCore::lose(int peer, const Status& why) {
  for (auto [one, end] = requesters.equal_range(peer); one != end; ++one) one->second->lose(why);
  std::erase_if(connections_, [&](const auto& one) { return one->peer() == peer; });
}

void MessageCore::close() {
  engine->assert_turn();
  engine->remove(id_);
  for (const auto& one : connections_) one->leave();
  const auto are_sent = [&] {
    return std::none_of(connections_.begin(), connections_.end(),
                        [](const auto& one) { return one->connection().has_unsent(); });
  };
  static_cast<void>(engine->wait(are_sent, Deadline::after(kGoodbyeLimit)).is_ok());
  for (const auto& one : connections_) one->close();
  connections_.clear();
}

}  // namespace memspan::inline transport
