// SPDX-License-Identifier: Apache-2.0
#include "transport/message/doorway.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace memspan {
namespace {

// A caller that does not greet in this time is not a peer.
constexpr auto kGreetingTime = std::chrono::seconds(10);
// Connections that have not greeted: more than any job starts at once, fewer than the limit of
// descriptors.
constexpr std::size_t kMostPending = 256;

}  // namespace

// A connection that a peer made.
class Doorway::Incoming final : public ConnectionOwner, public AnswerSink {
 public:
  Incoming(Doorway& doorway, std::unique_ptr<ByteStream> stream)
      : doorway_(doorway),
        side_(doorway.services_, *this),
        connection_(std::make_shared<Connection>(doorway.core_, std::move(stream),
                                                 Session::accepting(doorway.core_.secret), side_,
                                                 *this)),
        greets_until_(Clock::now() + kGreetingTime) {}
  // Later the engine is gone, or belongs to another process.
  ~Incoming() override {
    if (!doorway_.core_.ends.load(std::memory_order_acquire)) connection_->close();
  }

  Status start() {
    MEMSPAN_PASS(connection_->start());
    connection_->heed_deliveries();
    connection_->wake_at(greets_until_);
    return Status::ok();
  }
  bool is_admitted() const { return side_.is_admitted(); }
  // -1 before the peer has greeted.
  int peer() const { return side_.is_admitted() ? side_.peer() : -1; }
  bool has_unsent() const { return connection_->has_unsent(); }
  void close() { connection_->close(); }
  void say_goodbye() {
    // Before the greeting there is no key.
    const OutFrame bye{{.type = FrameType::kBye, .region = {}}, nullptr};
    if (is_admitted()) static_cast<void>(connection_->submit_control(bye).is_ok());
  }

  // Destroys this if it fails.
  Status post(const OutFrame& out) {
    Status sent = connection_->submit_control(out);
    if (!sent.is_ok()) on_end(sent);
    return sent;
  }

  Status answer(const Frame& frame, std::span<const std::byte> payload) override {
    const OutFrame out{frame, payload.data()};
    if (frame.type == FrameType::kAlive) return connection_->submit_control(out);
    return connection_->submit({&out, 1}, nullptr);
  }

  void deliver(const MessageTag& tag, Buffer bytes) override {
    doorway_.core_.deliveries.add_message(side_.peer(), tag, std::move(bytes), backlog_);
    doorway_.engine_.assert_turn();
    doorway_.engine_.request_after_turn();
  }
  bool is_delivered() override {
    if (backlog_->count.load() == 0) return true;
    backlog_->is_awaited.store(true);
    return backlog_->count.load() == 0;  // handled just now
  }
  bool has(const Backlog* backlog) const { return backlog_.get() == backlog; }
  void call_again() { connection_->call_again(); }

  Status after_look() override {
    const MessageHandlers& handlers = doorway_.core_.options.handlers;
    if (side_.take_applied() && handlers.after_apply) handlers.after_apply();
    if (!side_.is_admitted() && Clock::now() >= greets_until_)
      return {Code::kAuth, "it did not greet in time"};
    if (side_.has_beats()) connection_->expect_life(false);
    return Status::ok();
  }

  void on_end(const Status& why) override {
    MessageCore& core = doorway_.core_;
    const bool is_cut = why.code() == Code::kPeerLost;
    if (!is_cut) core.counters.broken.fetch_add(1, std::memory_order_relaxed);
    if (side_.is_admitted() && !(side_.said_goodbye() && is_cut))
      core.tell_lost(side_.peer(),
                     {Code::kPeerLost, fmt::format("{}: {}", side_.peer_name(), why.message())});
    doorway_.forget(*this);  // destroys this
  }

 private:
  Doorway& doorway_;
  OwnerSide side_;
  const std::shared_ptr<Connection> connection_;  // shared with the engine
  const Clock::time_point greets_until_;
  const std::shared_ptr<Backlog> backlog_ = std::make_shared<Backlog>();  // shared with deliveries
};

Doorway::Doorway(MessageCore& core, OwnerServices& services, std::unique_ptr<Listener> listener)
    : core_(core), engine_(*core.engine), services_(services), listener_(std::move(listener)) {}

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
  const auto is_pending = [](const auto& one) { return !one->is_admitted(); };
  if (std::count_if(incoming_.begin(), incoming_.end(), is_pending) >=
      static_cast<std::ptrdiff_t>(kMostPending))
    incoming_.erase(std::find_if(incoming_.begin(), incoming_.end(), is_pending));
  auto fresh = std::make_unique<Incoming>(*this, std::move(stream));
  if (fresh->start().is_ok()) incoming_.push_back(std::move(fresh));
}

void Doorway::forget(const Incoming& one) {
  std::erase_if(incoming_, [&](const auto& other) { return other.get() == &one; });
}

void Doorway::on_delivered(const Backlog* backlog) {
  for (const auto& one : incoming_)
    if (one->has(backlog)) one->call_again();
}

Status Doorway::post(int peer, const OutFrame& out) {
  const auto found = std::find_if(incoming_.rbegin(), incoming_.rend(),
                                  [&](const auto& one) { return one->peer() == peer; });
  if (found == incoming_.rend()) return {Code::kPeerLost, "it has no connection to this process"};
  return (*found)->post(out);
}

void Doorway::lose(int peer) {
  std::erase_if(incoming_, [&](const auto& one) { return one->peer() == peer; });
}

void Doorway::close() {
  engine_.assert_turn();
  engine_.remove(id_);
  for (const auto& one : incoming_) one->say_goodbye();
  const auto are_sent = [&] {
    return std::none_of(incoming_.begin(), incoming_.end(),
                        [](const auto& one) { return one->has_unsent(); });
  };
  static_cast<void>(engine_.wait(are_sent, Deadline::after(kGoodbyeLimit)).is_ok());
  for (const auto& one : incoming_) one->close();
  incoming_.clear();
}

}  // namespace memspan
