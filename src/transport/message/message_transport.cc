// SPDX-License-Identifier: Apache-2.0
#include "transport/message/message_transport.h"

#include <fmt/format.h>

#include "core/random.h"
#include "transport/message/message_link.h"

namespace memspan::inline transport {

ExposedRegion::~ExposedRegion() {
  core_.services.regions.remove(described_.id);
  if (described_.transport_key == kNativeRegion)
    core_.services.native->retract(base_, described_.bytes);
}

MessageTransport::MessageTransport(MessageOptions options)
    : secret_(random_hex(sizeof(SipKey))),
      core_(std::make_unique<MessageCore>(std::move(options), SipKey::from_hex(secret_).value())) {}

MessageTransport::~MessageTransport() {
  if (core_->engine == nullptr) return;
  core_->ends.store(true, std::memory_order_release);
  core_->engine->stop();
  if (is_forgotten_) return;
  core_->deliveries.end();
  const Turn turn(*core_->engine);
  core_->close();
}

Result<std::unique_ptr<MessageTransport>> MessageTransport::make(MessageOptions options) {
  std::unique_ptr<MessageTransport> made(new MessageTransport(std::move(options)));
  MessageCore& core = *made->core_;
  MEMSPAN_TRY_ASSIGN(core.engine, Engine::start([&core] { core.deliveries.run(); }),
                     "the transport \"message\"");
  MEMSPAN_TRY_ASSIGN(std::unique_ptr<Listener> listener, core.options.carrier->listen(),
                     "the transport \"message\"");
  const Turn turn(*core.engine);
  MEMSPAN_TRY(core.listen(std::move(listener)), "the transport \"message\"");
  return made;
}

std::string MessageTransport::address() const {
  return fmt::format("{}/{}", secret_, core_->address());
}

Result<std::unique_ptr<ExposedRegion>> MessageTransport::expose(const LocalRegion& region) {
  MEMSPAN_TRY_ASSIGN(const RegionId id, core_->services.regions.add(region), "exposing a region");
  const bool is_native = region.lasts && core_->services.native != nullptr;
  const std::string key(is_native ? kNativeRegion : std::string_view());
  return std::unique_ptr<ExposedRegion>(
      new ExposedRegion(*core_, {id, region.bytes, region.kind, key}, region.base));
}

std::unique_ptr<Link> MessageTransport::connect(const PeerAddress& peer) {
  return std::make_unique<MessageLink>(*core_, peer);
}

ProgressEngine& MessageTransport::engine() {
  return *core_->engine;
}

void MessageTransport::forget_in_child() {
  is_forgotten_ = true;
  core_->ends.store(true, std::memory_order_release);
  core_->engine->forget_in_child();
}

void MessageTransport::lose(int peer, const Status& why) {
  const Turn turn(*core_->engine);
  core_->lose(peer, why);
}

void MessageTransport::exclude(int peer, const Status& why) {
  const Turn turn(*core_->engine);
  core_->excluded.insert(peer);
  core_->deliveries.drop_messages(peer);
  core_->lose(peer, why);
}

Status MessageTransport::post_back(int peer, const MessageTag& tag,
                                   std::span<const std::byte> bytes) {
  MEMSPAN_TRY_ASSIGN(const OutFrame message, message_frame(tag, bytes), "an answer");
  const Turn turn(*core_->engine);
  return core_->post(peer, message);
}

void MessageTransport::call_at(Clock::time_point when, std::function<void()> call) {
  if (!is_forgotten_) core_->call_at(when, std::move(call));
}

void MessageTransport::end_handlers() {
  if (!is_forgotten_) core_->deliveries.end();
}

}  // namespace memspan::inline transport
