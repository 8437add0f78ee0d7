// SPDX-License-Identifier: Apache-2.0
#include "fabric/remote_access.h"

#include <optional>
#include <span>
#include <utility>

#include "core/interrupt.h"
#include "store/fields.h"

namespace memspan {
namespace {

// Kinds of messages.
constexpr std::uint64_t kRequest = 1, kReply = 2;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

struct RemoteAccess::Call {
  const RemotePeer& peer;  // outlives it
  std::optional<Result<std::string>> answer = {};
};

Result<std::unique_ptr<RemoteAccess>> RemoteAccess::create(Services& services,
                                                           const MemberIdentity& self,
                                                           const CarrierOptions& carrier) {
  std::unique_ptr<RemoteAccess> made(new RemoteAccess(services));
  MEMSPAN_PASS_ASSIGN(auto faults, Faults::from_environment());
  MEMSPAN_PASS_ASSIGN(auto moves_bytes, make_carrier(carrier));
  MessageOptions options{.carrier = std::move(moves_bytes),
                         .self = number_of(self),
                         .name = self.name(),
                         .faults = std::move(faults),
                         .silence_limit = carrier.silence_limit};
  options.handlers.on_message = [&access = *made](int peer, const MessageTag& tag,
                                                  const Buffer& bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (tag.kind == kRequest) access.on_request(peer, text);
    if (tag.kind == kReply) access.on_reply(text);
  };
  options.handlers.on_peer_lost = [&access = *made](int peer, const Status& why) {
    access.on_peer_lost(peer, why);
  };
  options.handlers.on_peer_left = [&access = *made](int peer) {
    access.on_peer_lost(peer, Status(Code::kPeerLost, "it has left"));
  };
  MEMSPAN_TRY_ASSIGN(made->transport_, MessageTransport::make(std::move(options)),
                     "reaching other hosts");
  return made;
}

Result<std::shared_ptr<RemotePeer>> RemoteAccess::connect(const MemberIdentity& who,
                                                          const std::string& address) {
  MutexLock lock(mutex_);
  if (is_ending_) return Status(Code::kUnavailable, "this process leaves the store");
  std::erase_if(by_session_, [](const auto& entry) { return entry.second.expired(); });
  if (auto peer = known(who); peer != nullptr) return peer;
  auto link = transport_->connect({.peer = number_of(who), .name = who.name(), .address = address});
  auto made = std::make_shared<RemotePeer>(*this, number_of(who), who.name(), std::move(link));
  by_session_[who.session] = made;
  return made;
}

Result<std::string> RemotePeer::call(std::string_view service, std::string_view request,
                                     Deadline deadline) {
  const auto call = std::make_shared<RemoteAccess::Call>(RemoteAccess::Call{*this});
  std::uint64_t number = 0;
  {
    MutexLock lock(access_.mutex_);
    number = ++access_.last_call_;
    access_.calls_[number] = call;
  }
  FieldWriter writer;
  writer(number, service, request);
  Status status = link_->send({kRequest}, bytes_of(writer.take()), deadline);
  MutexLock lock(access_.mutex_);
  while (status.is_ok() && !call->answer)
    if (!wait_interruptibly(access_.changed_, access_.mutex_, deadline) && !call->answer)
      status = end_of_wait(fmt::format("{} did not answer in time", name_));
  access_.calls_.erase(number);
  if (status.is_ok()) status = call->answer->status();
  if (status.code() == Code::kPeerLost && has_left())
    return Status(Code::kNotFound, fmt::format("{} has left", name_));
  if (status.code() == Code::kPeerLost) mark_lost();
  if (!status.is_ok()) return status;
  return std::move(*call->answer);
}

// Drops the lost links, so that the next call makes a new one, and ends the calls that wait for
// their answers. A connection that only the peer has made carries none of them.
void RemoteAccess::on_peer_lost(int peer, const Status& why) {
  MutexLock lock(mutex_);
  std::erase_if(by_session_, [](const auto& entry) {
    const auto known = entry.second.lock();
    return known == nullptr || known->is_lost();
  });
  for (const auto& [number, call] : calls_)
    if (call->peer.number_ == peer && call->peer.is_lost() && !call->answer)
      call->answer = Status(Code::kPeerLost, why.message());
  changed_.notify_all();
}

// Drops bytes that are not a request.
void RemoteAccess::on_request(int peer, std::string_view bytes) {
  FieldReader reader(bytes);
  std::uint64_t number = 0;
  std::string service, body;
  reader(number, service, body);
  if (!reader.is_finished()) return;
  {
    MutexLock lock(mutex_);
    if (is_ending_) return;
    ++answering_;
  }
  reply(peer, number, services_.answer(service, body));
  MutexLock lock(mutex_);
  if (--answering_ == 0) changed_.notify_all();
}

// A caller that is gone needs no answer.
void RemoteAccess::reply(int peer, std::uint64_t number, const Result<std::string>& answer) {
  FieldWriter writer;
  writer(number, answer.code(), answer.is_ok() ? *answer : answer.status().message());
  const Status sent = transport_->post_back(peer, {kReply}, bytes_of(writer.take()));
  if (sent.code() == Code::kInvalidArgument) reply(peer, number, sent);  // too long
}

void RemoteAccess::on_reply(std::string_view bytes) {
  FieldReader reader(bytes);
  std::uint64_t number = 0;
  Code code = Code::kOk;
  std::string text;
  reader(number, code, text);
  if (!reader.is_finished()) return;
  MutexLock lock(mutex_);
  const auto found = calls_.find(number);
  if (found == calls_.end() || found->second->answer) return;  // given up, or over
  if (code == Code::kOk)
    found->second->answer = std::move(text);
  else
    found->second->answer = Status(code, std::move(text));
  changed_.notify_all();
}

}  // namespace memspan
