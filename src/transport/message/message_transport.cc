// SPDX-License-Identifier: Apache-2.0
#include "transport/message/message_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/random.h"
#include "transport/message/incoming.h"
#include "transport/message/message_link.h"
#include "transport/message/session.h"

namespace memspan {
namespace {

constexpr std::size_t kSecretBytes = sizeof(SipKey);
// Connections that have not greeted: more than any job starts at once, fewer than the limit of
// descriptors.
constexpr std::size_t kMostPending = 256;

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

// Accepts peers.
class Doorway final : public PollClient {
 public:
  Doorway(MessageCore& core, OwnerServices& services, std::unique_ptr<Listener> listener)
      : core_(core), services_(services), listener_(std::move(listener)) {}

  std::string address() const { return listener_->address(); }
  Status start(const std::shared_ptr<Doorway>& self) {
    MEMSPAN_TRY_ASSIGN(watched_, core_.progress->add(listener_->descriptor(), self), "listening");
    core_.progress->watch(watched_, EPOLLIN);
    return Status::ok();
  }
  void on_ready(std::uint32_t) override {
    {
      MutexLock lock(mutex_);
      while (std::unique_ptr<ByteStream> stream = listener_->accept()) take(std::move(stream));
    }
    core_.progress->watch(watched_, EPOLLIN);
  }
  bool can_be_asked() const override { return listener_->moves_streams(); }
  std::vector<std::shared_ptr<Incoming>> incoming() {
    MutexLock lock(mutex_);
    return there();
  }
  void stop() { core_.progress->remove(watched_); }

 private:
  void take(std::unique_ptr<ByteStream> stream) MEMSPAN_REQUIRES(mutex_) {
    std::erase_if(incoming_, [](const auto& one) { return one.expired(); });
    std::vector<std::shared_ptr<Incoming>> pending = there();
    pending.erase(std::remove_if(pending.begin(), pending.end(),
                                 [](const auto& one) { return one->peer() >= 0; }),
                  pending.end());
    if (pending.size() >= kMostPending) pending.front()->close(false);
    auto fresh = std::make_shared<Incoming>(core_, services_, std::move(stream));
    if (fresh->start(fresh).is_ok()) incoming_.push_back(fresh);
  }
  std::vector<std::shared_ptr<Incoming>> there() MEMSPAN_REQUIRES(mutex_) {
    std::vector<std::shared_ptr<Incoming>> all;
    for (const auto& one : incoming_)
      if (auto living = one.lock(); living != nullptr && !living->is_over())
        all.push_back(std::move(living));
    return all;
  }

  MessageCore& core_;
  OwnerServices& services_;
  const std::unique_ptr<Listener> listener_;
  Progress::Id watched_ = 0;
  Mutex mutex_;
  std::vector<std::weak_ptr<Incoming>> incoming_ MEMSPAN_GUARDED_BY(mutex_);
};

class MessageTransportImpl final : public MessageTransport {
 public:
  explicit MessageTransportImpl(MessageOptions options)
      : secret_(random_hex(kSecretBytes)),
        core_(std::move(options), SipKey::from_hex(secret_).value()),
        services_{core_.regions, core_.counters, core_.options.handlers.on_message,
                  [this](const Hello& hello) { return admit(hello); },
                  [this](std::byte* base, std::size_t bytes) { return native_key(base, bytes); }} {}

  ~MessageTransportImpl() override {
    if (core_.progress == nullptr) return;
    core_.ends.store(true, std::memory_order_release);
    core_.progress->stop();
    if (doorway_ == nullptr || is_forgotten_) return;
    doorway_->stop();
    for (const auto& one : doorway_->incoming()) one->close(true);
  }

  Status start() {
    MEMSPAN_TRY_ASSIGN(core_.progress, Progress::start(), "the transport \"message\"");
    MEMSPAN_TRY_ASSIGN(std::unique_ptr<Listener> listener, core_.options.carrier->listen(),
                       "the transport \"message\"");
    auto doorway = std::make_shared<Doorway>(core_, services_, std::move(listener));
    MEMSPAN_TRY(doorway->start(doorway), "the transport \"message\"");
    doorway_ = std::move(doorway);
    return Status::ok();
  }

  std::string_view name() const override { return "message"; }
  const Capabilities& capabilities() const override { return capabilities_; }
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
    auto requester = std::make_shared<Requester>(core_, peer);
    MutexLock lock(mutex_);
    // Only when full: otherwise each connect of a large job would scan all of them.
    if (requesters_.size() == requesters_.capacity()) {
      std::erase_if(requesters_, [](const auto& one) { return one.expired(); });
      requesters_.reserve(2 * requesters_.size() + 1);
    }
    requesters_.push_back(requester);
    return std::unique_ptr<Link>(
        std::make_unique<MessageLink>(std::move(requester), core_.options.carrier->native()));
  }

  void progress() override { core_.progress->poll(); }
  void begin_progress() override { core_.progress->begin_polling(); }
  void end_progress() override { core_.progress->end_polling(); }
  void rest_progress() override { core_.progress->give_back(); }

  void forget_in_child() override {
    is_forgotten_ = true;
    core_.ends.store(true, std::memory_order_release);
    core_.progress->forget_in_child();
  }

  void lose(int peer, const Status& why) override {
    std::vector<std::shared_ptr<Requester>> requesters;
    {
      MutexLock lock(mutex_);
      for (const auto& one : requesters_)
        if (auto there = one.lock(); there != nullptr && there->peer() == peer)
          requesters.push_back(std::move(there));
    }
    for (const auto& one : requesters) one->lose(why);
    for (const auto& one : doorway_->incoming())
      if (one->peer() == peer) one->close(false);
  }

  void exclude(int peer, const Status& why) override {
    core_.exclude(peer);
    lose(peer, why);
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
  // Empty if there is no key.
  std::string native_key(std::byte* base, std::size_t bytes) {
    NativeAccess* const access = core_.options.carrier->native();
    auto key = access == nullptr ? Result<std::string>(std::string()) : access->key(base, bytes);
    if (!key.is_ok() || key->empty()) return {};
    core_.native_keys.fetch_add(1, std::memory_order_relaxed);
    return std::move(key).value();
  }
  Status admit(const Hello& hello) {
    if (core_.is_excluded(hello.peer)) return {Code::kAuth, "it is not a member any more"};
    if (nonces_.add(hello.nonce)) return Status::ok();
    return {Code::kAuth, "it repeats the greeting of another connection"};
  }

  const std::string secret_;  // as text
  MessageCore core_;
  NonceLog nonces_;
  OwnerServices services_;
  std::shared_ptr<Doorway> doorway_;
  bool is_forgotten_ = false;
  Mutex mutex_;
  std::vector<std::weak_ptr<Requester>> requesters_ MEMSPAN_GUARDED_BY(mutex_);
  const Capabilities capabilities_{
      .direct = false, .atomics = true, .ordered = true, .messages = true};
};

}  // namespace

Result<std::unique_ptr<MessageTransport>> make_message_transport(MessageOptions options) {
  auto made = std::make_unique<MessageTransportImpl>(std::move(options));
  MEMSPAN_PASS(made->start());
  return std::unique_ptr<MessageTransport>(std::move(made));
}

}  // namespace memspan
