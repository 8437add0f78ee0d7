// SPDX-License-Identifier: Apache-2.0
#include "transport/message/doorway.h"

#include <algorithm>
#include <utility>

namespace memspan {
namespace {

// Connections that have not greeted: more than any job starts at once, fewer than the limit of
// descriptors.
constexpr std::size_t kMostPending = 256;

}  // namespace

Doorway::Doorway(MessageCore& core, std::unique_ptr<Listener> listener)
    : core_(core), engine_(*core.engine), listener_(std::move(listener)) {}

Doorway::~Doorway() = default;

Status Doorway::start(const std::shared_ptr<Doorway>& self) {
  engine_.assert_turn();
  MEMSPAN_TRY_ASSIGN(id_, engine_.add(listener_->descriptor(), self), "listening");
  engine_.watch(id_, EPOLLIN);
  if (listener_->moves_streams())
    engine_.set_prepare_sleep(id_, [this] { return listener_->prepare_sleep(); });
  return Status::ok();
}

void Doorway::on_ready(std::uint32_t) {
  while (std::unique_ptr<ByteStream> stream = listener_->accept()) take(std::move(stream));
}

bool Doorway::look() {
  if (!listener_->moves_streams()) return false;
  on_ready(EPOLLIN);
  return false;
}

void Doorway::take(std::unique_ptr<ByteStream> stream) {
  const auto is_pending = [](const auto& one) { return one->peer() < 0; };
  if (std::count_if(connections_.begin(), connections_.end(), is_pending) >=
      static_cast<std::ptrdiff_t>(kMostPending))
    connections_.erase(std::find_if(connections_.begin(), connections_.end(), is_pending));
  static_cast<void>(
      add(std::make_unique<PeerConnection>(core_, std::move(stream), nullptr, core_.secret), 0)
          .is_ok());
}

Result<PeerConnection*> Doorway::add(std::unique_ptr<PeerConnection> fresh, std::uint8_t flags) {
  MEMSPAN_PASS(fresh->start(flags));
  connections_.push_back(std::move(fresh));
  return connections_.back().get();
}

void Doorway::forget(const PeerConnection& one) {
  std::erase_if(connections_, [&](const auto& other) { return other.get() == &one; });
}

PeerConnection* Doorway::find(int peer, const SipKey& secret) const {
  PeerConnection* found = nullptr;
  for (const auto& one : connections_)
    if (one->peer() == peer && one->is_open() && one->is_of(secret) &&
        (found == nullptr || one->is_free()))
      found = one.get();
  return found;
}

void Doorway::stop_yielding(int peer) {
  std::erase_if(connections_,
                [&](const auto& one) { return one->peer() == peer && one->has_yielded_peer(); });
}

void Doorway::on_delivered(const Backlog* backlog) {
  for (const auto& one : connections_) one->on_delivered(backlog);
}

// Prefers one with a requester: its peer has proved its identity.
Status Doorway::post(int peer, const OutFrame& out) {
  PeerConnection* found = nullptr;
  for (const auto& one : connections_)
    if (one->peer() == peer && one->is_open() && !one->is_over() &&
        (found == nullptr || !found->has_requester()))
      found = one.get();
  if (found == nullptr) return {Code::kPeerLost, "it has no connection to this process"};
  return found->post(out);
}

void Doorway::lose(int peer) {
  std::erase_if(connections_, [&](const auto& one) { return one->peer() == peer; });
}

void Doorway::close() {
  engine_.assert_turn();
  engine_.remove(id_);
  for (const auto& one : connections_) one->leave();
  const auto are_sent = [&] {
    return std::none_of(connections_.begin(), connections_.end(),
                        [](const auto& one) { return one->connection().has_unsent(); });
  };
  static_cast<void>(engine_.wait(are_sent, Deadline::after(kGoodbyeLimit)).is_ok());
  for (const auto& one : connections_) one->close();
  connections_.clear();
}

}  // namespace memspan
