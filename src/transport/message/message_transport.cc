// SPDX-License-Identifier: Apache-2.0
#include "transport/message/message_transport.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/random.h"
#include "transport/message/doorway.h"
#include "transport/message/message_link.h"
#include "transport/message/requester.h"

namespace memspan {
namespace {

constexpr std::size_t kSecretBytes = sizeof(SipKey);

class ExposedMemory final : public ExposedRegion {
 public:
  // `access`: gives keys for it, or null.
  ExposedMemory(RegionTable& table, RemoteRegion described, NativeAccess* access, std::byte* base)
      : table_(table), described_(std::move(described)), access_(access), base_(base) {}
  ~ExposedMemory() override {
    table_.remove(described_.id);
    if (access_ != nullptr) access_->retract(base_, described_.bytes);
  }
  const RemoteRegion& describe() const override { return described_; }

 private:
  RegionTable& table_;
  const RemoteRegion described_;
  NativeAccess* const access_;
  std::byte* const base_;
};

// Calls whose time comes.
class LaterCalls final : public Source {
 public:
  explicit LaterCalls(MessageCore& core) : core_(core) {}
  Status start(const std::shared_ptr<LaterCalls>& self) {
    core_.engine->assert_turn();
    MEMSPAN_TRY_ASSIGN(id_, core_.engine->add(-1, self), "timers");
    return Status::ok();
  }
  void add(Clock::time_point when, std::function<void()> call) {
    const Turn turn(*core_.engine);
    calls_.emplace(when, std::move(call));
    core_.engine->wake_at(id_, when);
  }
  void on_ready(std::uint32_t) override {
    const auto later = calls_.upper_bound(Clock::now());
    for (auto due = calls_.begin(); due != later; ++due)
      core_.deliveries.add_call(std::move(due->second));
    calls_.erase(calls_.begin(), later);
    core_.run_handlers_soon();
  }

 private:
  MessageCore& core_;
  Engine::Id id_ = 0;
  std::multimap<Clock::time_point, std::function<void()>> calls_;  // used with the turn
};

class MessageTransportImpl final : public MessageTransport {
 public:
  explicit MessageTransportImpl(MessageOptions options)
      : secret_(random_hex(kSecretBytes)),
        core_(std::move(options), SipKey::from_hex(secret_).value()) {
    core_.services.native_key = [this](std::byte* base, std::size_t bytes) {
      return native_key(base, bytes);
    };
  }

  ~MessageTransportImpl() override {
    if (core_.engine == nullptr) return;
    core_.ends.store(true, std::memory_order_release);
    core_.engine->stop();
    if (doorway_ == nullptr || is_forgotten_) return;
    core_.deliveries.end();
    const Turn turn(*core_.engine);
    doorway_->close();
  }

  Status start() {
    MEMSPAN_TRY_ASSIGN(core_.engine, Engine::start([this] { core_.deliveries.run(); }),
                       "the transport \"message\"");
    MEMSPAN_TRY_ASSIGN(std::unique_ptr<Listener> listener, core_.options.carrier->listen(),
                       "the transport \"message\"");
    auto doorway = std::make_shared<Doorway>(core_, std::move(listener));
    core_.deliveries.set_on_delivered([this](const std::shared_ptr<Backlog>& backlog) {
      const Turn turn(*core_.engine);
      doorway_->on_delivered(backlog.get());
    });
    const Turn turn(*core_.engine);
    doorway_ = doorway;
    core_.doorway = doorway.get();
    MEMSPAN_TRY(later_->start(later_), "the transport \"message\"");
    MEMSPAN_TRY(doorway->start(doorway), "the transport \"message\"");
    return Status::ok();
  }

  std::string address() const override {
    return fmt::format("{}/{}", secret_, doorway_->address());
  }

  Result<std::unique_ptr<ExposedRegion>> expose(const LocalRegion& region) override {
    MEMSPAN_TRY_ASSIGN(const RegionId id, core_.regions.add(region), "exposing a region");
    NativeAccess* const access = region.lasts ? core_.options.carrier->native() : nullptr;
    const std::string key(access != nullptr ? kNativeRegion : std::string_view());
    return std::unique_ptr<ExposedRegion>(std::make_unique<ExposedMemory>(
        core_.regions, RemoteRegion{id, region.bytes, region.kind, key}, access, region.base));
  }

  Result<std::unique_ptr<Link>> connect(const PeerAddress& peer) override {
    return std::unique_ptr<Link>(
        std::make_unique<MessageLink>(core_, peer, core_.options.carrier->native()));
  }

  void progress() override { core_.engine->poll(); }
  void begin_progress() override { core_.engine->begin_polling(); }
  void end_progress() override { core_.engine->end_polling(); }
  void rest_progress() override { core_.engine->rest(); }

  void forget_in_child() override {
    is_forgotten_ = true;
    core_.ends.store(true, std::memory_order_release);
    core_.engine->forget_in_child();
  }

  void lose(int peer, const Status& why) override {
    const Turn turn(*core_.engine);
    lose_now(peer, why);
  }

  void exclude(int peer, const Status& why) override {
    const Turn turn(*core_.engine);
    core_.excluded.insert(peer);
    core_.deliveries.drop_messages(peer);
    lose_now(peer, why);
  }

  Status post_back(int peer, const MessageTag& tag, std::span<const std::byte> bytes) override {
    MEMSPAN_TRY_ASSIGN(const OutFrame message, message_frame(tag, bytes), "an answer");
    const Turn turn(*core_.engine);
    return doorway_->post(peer, message);
  }

  void call_at(Clock::time_point when, std::function<void()> call) override {
    if (!is_forgotten_) later_->add(when, std::move(call));
  }
  void end_handlers() override {
    if (!is_forgotten_) core_.deliveries.end();
  }

  std::vector<MessageCounter> counters() const override {
    const OwnerCounters& counted = core_.counters;
    NativeAccess* const access = core_.options.carrier->native();
    const auto refused = [&](Refusal refusal) {
      return counted.refused[static_cast<std::size_t>(refusal)].load(std::memory_order_relaxed);
    };
    return {{"puts applied", counted.puts.load(std::memory_order_relaxed)},
            {"gets answered", counted.gets.load(std::memory_order_relaxed)},
            {"atomics applied", counted.atomics.load(std::memory_order_relaxed)},
            {"messages received", counted.messages.load(std::memory_order_relaxed)},
            {"bytes of messages", counted.message_bytes.load(std::memory_order_relaxed)},
            {"refused: no such region", refused(Refusal::kRegion)},
            {"refused: stale region", refused(Refusal::kGeneration)},
            {"refused: out of bounds", refused(Refusal::kBounds)},
            {"refused: not a word", refused(Refusal::kWord)},
            {"refused: no memory there", refused(Refusal::kMemory)},
            {"refused: not admitted", refused(Refusal::kHello)},
            {"connections made", core_.connections_made.load(std::memory_order_relaxed)},
            {"connections with bad frames", counted.broken.load(std::memory_order_relaxed)},
            {"peers lost", core_.peers_lost.load(std::memory_order_relaxed)},
            {"native puts", core_.native_puts.load(std::memory_order_relaxed)},
            {"native gets", core_.native_gets.load(std::memory_order_relaxed)},
            {"native keys given", core_.native_keys.load(std::memory_order_relaxed)},
            {"native registrations", access == nullptr ? 0 : access->registrations()}};
  }

 private:
  void lose_now(int peer, const Status& why) {
    for (auto [one, end] = core_.requesters.equal_range(peer); one != end; ++one)
      one->second->lose(why);
    doorway_->lose(peer);
  }
  // Empty if there is no key.
  std::string native_key(std::byte* base, std::size_t bytes) {
    NativeAccess* const access = core_.options.carrier->native();
    auto key = access == nullptr ? Result<std::string>(std::string()) : access->key(base, bytes);
    if (!key.is_ok() || key->empty()) return {};
    core_.native_keys.fetch_add(1, std::memory_order_relaxed);
    return std::move(key).value();
  }

  const std::string secret_;  // as text
  MessageCore core_;
  const std::shared_ptr<LaterCalls> later_ = std::make_shared<LaterCalls>(core_);
  std::shared_ptr<Doorway> doorway_;  // shared with the engine, as is later_
  bool is_forgotten_ = false;
};

}  // namespace

Result<std::unique_ptr<MessageTransport>> make_message_transport(MessageOptions options) {
  auto made = std::make_unique<MessageTransportImpl>(std::move(options));
  MEMSPAN_PASS(made->start());
  return std::unique_ptr<MessageTransport>(std::move(made));
}

}  // namespace memspan
