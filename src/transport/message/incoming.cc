// SPDX-License-Identifier: Apache-2.0
#include "transport/message/incoming.h"

#include <fmt/format.h>

namespace memspan {
namespace {

// A caller that does not greet in this time is not a peer.
constexpr auto kGreetingTime = std::chrono::seconds(10);
// Retry delay of a timer if another thread is serving.
constexpr auto kAgain = std::chrono::milliseconds(1);
// Receives of one connection before others get their turn.
constexpr int kReceivesAtOnce = 64;

}  // namespace

Incoming::Incoming(MessageCore& core, OwnerServices& services, std::unique_ptr<ByteStream> stream)
    : core_(core),
      side_(services, *this),
      connection_(std::move(stream), Session::accepting(core.secret), side_, core.options.faults),
      greets_until_(Clock::now() + kGreetingTime),
      heartbeat_(core.options.silence_limit) {}

Status Incoming::start(const std::shared_ptr<Incoming>& self) {
  MEMSPAN_TRY_ASSIGN(watched_, core_.progress->add(connection_.descriptor(), self),
                     "accepting a connection");
  core_.progress->wake_at(watched_, greets_until_);
  watch();
  return Status::ok();
}

void Incoming::watch() {
  core_.progress->watch(watched_, EPOLLIN | (connection_.has_queued() ? EPOLLOUT : 0u));
}

void Incoming::on_ready(std::uint32_t events) {
  if (is_over()) return;
  if ((events & EPOLLOUT) != 0) connection_.send_queued();
  // The thread that serves it watches it again.
  if (!connection_.try_own()) {
    if (events == 0) core_.progress->wake_at(watched_, Clock::now() + kAgain);
    return;
  }
  if (!is_held_back(events)) serve();
  connection_.disown();
  if (!is_over() && held_until_ == Clock::time_point{}) watch();
}

// Injected faults: bytes are handled later, or not at all.
bool Incoming::is_held_back(std::uint32_t events) {
  const auto& faults = core_.options.faults;
  if (faults == nullptr || !faults->is_any()) return false;
  const auto now = Clock::now();
  if (held_until_ == Clock::time_point{} && (events & EPOLLIN) != 0)
    held_until_ = now + (faults->silent.load() ? std::chrono::hours(1) : faults->hold());
  if (held_until_ <= now) {
    held_until_ = {};
    return false;
  }
  core_.progress->wake_at(watched_, held_until_);
  return true;
}

void Incoming::serve() {
  const bool is_new = peer() < 0;
  const Status status = receive_some();
  peer_.store(side_.is_admitted() ? side_.peer() : -1, std::memory_order_release);
  // The peer was excluded after it greeted, before lose() could see its number.
  if (is_new && side_.is_admitted() && core_.is_excluded(side_.peer())) close(false);
  if (side_.take_applied() && core_.options.handlers.after_apply)
    core_.options.handlers.after_apply();
  if (!status.is_ok()) return end(status);
  if (!side_.is_admitted() && Clock::now() >= greets_until_)
    return end({Code::kAuth, "it did not greet in time"});
  if (const Status silent = look_for_silence(); !silent.is_ok()) end(silent);
}

// From the first beat on.
Status Incoming::look_for_silence() {
  if (core_.options.silence_limit == Duration::max() || !side_.has_beats()) return Status::ok();
  const auto now = Clock::now();
  if (!heartbeat_.has_begun())
    heartbeat_.begin(now);
  else if (!heartbeat_.is_due(now))
    return Status::ok();
  MEMSPAN_PASS(heartbeat_.look(now, connection_.received()));
  core_.progress->wake_at(watched_, heartbeat_.next());
  return Status::ok();
}

Status Incoming::receive_some() {
  for (int i = 0; i < kReceivesAtOnce; ++i) {
    if (is_over()) return Status::ok();  // closed: bytes that have arrived are not applied
    const auto received = connection_.receive(Waiting::kNo);
    if (!received.is_ok()) return received.status();
    if (received->is_all) return Status::ok();
    if (i + 1 == kReceivesAtOnce && received->is_hidden)
      core_.progress->wake_at(watched_, Clock::now());
  }
  return Status::ok();
}

Status Incoming::answer(const Frame& frame, std::span<const std::byte> payload) {
  const OutFrame out{frame, payload.data()};
  return connection_.send({&out, 1}, SendMode::kQueue);
}

void Incoming::end(const Status& why) {
  if (is_over_.exchange(true, std::memory_order_acq_rel)) return;
  const bool is_cut = why.code() == Code::kPeerLost;
  // Counted before the other end can see the end.
  if (!is_cut) core_.counters.broken.fetch_add(1, std::memory_order_relaxed);
  connection_.cut();
  core_.progress->remove(watched_);
  if (is_closed_.load(std::memory_order_acquire) || !side_.is_admitted()) return;
  if (side_.said_goodbye() && is_cut) return;
  core_.tell_lost(side_.peer(),
                  {Code::kPeerLost, fmt::format("{}: {}", side_.peer_name(), why.message())});
}

void Incoming::close(bool says_goodbye) {
  is_closed_.store(true, std::memory_order_release);
  if (is_over_.exchange(true, std::memory_order_acq_rel)) return;
  // Before the greeting there is no key.
  if (says_goodbye && peer() >= 0) connection_.say_goodbye();
  connection_.cut();
  core_.progress->remove(watched_);
}

}  // namespace memspan
