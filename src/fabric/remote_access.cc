// SPDX-License-Identifier: Apache-2.0
#include "fabric/remote_access.h"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "core/interrupt.h"

namespace memspan {
namespace {

enum class MessageKind : std::uint64_t { kRequest = 1, kReply = 2 };

// How long a call waits for an answer that a peer may have sent before its goodbye, over another
// connection.
constexpr Duration kLastAnswerPatience = std::chrono::seconds(1);
// The most callers whose links are kept for answers.
constexpr std::size_t kMostCallers = 256;

struct CallRequest {
  std::uint64_t number = 0;  // of the caller's
  std::string_view reply_to;
  std::string_view service;
  std::string_view body;
};

std::string encode(const CallRequest& request) {
  ByteWriter writer;
  writer.u64(request.number);
  writer.text(request.reply_to);
  writer.text(request.service);
  writer.text(request.body);
  return writer.take();
}

std::string encode_reply(std::uint64_t number, const Result<std::string>& answer) {
  ByteWriter writer;
  writer.u64(number);
  writer.u8(static_cast<std::uint8_t>(answer.code()));
  writer.text(answer.is_ok() ? *answer : answer.status().message());
  return writer.take();
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

struct RemoteAccess::Call {
  const int peer;
  Mutex mutex;
  ConditionVariable changed;
  bool is_over MEMSPAN_GUARDED_BY(mutex) = false;
  bool has_left MEMSPAN_GUARDED_BY(mutex) = false;  // the peer
  Deadline until MEMSPAN_GUARDED_BY(mutex);
  Result<std::string> answer MEMSPAN_GUARDED_BY(mutex) = std::string();

  Call(int whom, const Deadline& deadline) : peer(whom), until(deadline) {}
  void note_left() MEMSPAN_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    has_left = true;
    until = until.within(kLastAnswerPatience);
    changed.notify_all();
  }
  void end(Result<std::string> with) MEMSPAN_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    if (is_over) return;
    is_over = true;
    answer = std::move(with);
    changed.notify_all();
  }
};

Result<std::string> RemotePeer::call(std::string_view service, std::string_view request,
                                     Deadline deadline) {
  auto answer = access_.call(*this, service, request, deadline);
  if (answer.code() == Code::kPeerLost) mark_lost();
  return answer;
}

Result<std::unique_ptr<RemoteAccess>> RemoteAccess::create(Services& services,
                                                           const MemberIdentity& self,
                                                           const CarrierOptions& carrier) {
  std::unique_ptr<RemoteAccess> made(new RemoteAccess(services));
  auto faults = Faults::from_environment();
  if (!faults.is_ok()) return faults.status();
  auto moves_bytes = make_carrier(carrier);
  if (!moves_bytes.is_ok()) return moves_bytes.status();
  MessageOptions options{.carrier = std::move(moves_bytes).value(),
                         .self = number_of(self),
                         .name = self.name(),
                         .faults = std::move(faults).value(),
                         .silence_limit = carrier.silence_limit};
  RemoteAccess& access = *made;
  options.handlers.on_message = [&access](int peer, const MessageTag& tag, const Buffer& bytes) {
    access.on_message(peer, tag.kind, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  options.handlers.on_peer_lost = [&access](int peer, const Status& why) {
    access.on_peer_lost(peer, why);
  };
  options.handlers.on_peer_left = [&access](int peer) { access.on_peer_left(peer); };
  auto transport = make_message_transport(std::move(options));
  if (!transport.is_ok()) return transport.status().annotate("reaching other hosts");
  made->transport_ = std::move(transport).value();
  return made;
}

// No link outlives the transport, and none is made while it ends.
RemoteAccess::~RemoteAccess() {
  std::map<std::string, std::shared_ptr<RemotePeer>> callers;
  {
    MutexLock lock(mutex_);
    is_closed_ = true;
    while (answering_ != 0) answered_.wait_until(mutex_, Deadline::never());
    is_ending_ = true;
    callers.swap(callers_);
  }
  callers.clear();
  transport_.reset();
}

Result<std::unique_ptr<ExposedRegion>> RemoteAccess::expose(void* base, std::uint64_t bytes,
                                                            Device& device) {
  return transport_->expose({.base = static_cast<std::byte*>(base),
                             .bytes = bytes,
                             .kind = device.is_host() ? MemoryKind::kHost : MemoryKind::kDevice});
}

Result<std::shared_ptr<RemotePeer>> RemoteAccess::connect(int number, std::string_view name,
                                                          const std::string& address) {
  MutexLock lock(mutex_);
  if (is_ending_) return Status(Code::kUnavailable, "this process leaves the store");
  std::erase_if(by_address_, [](const auto& entry) { return entry.second.expired(); });
  if (auto known = by_address_[address].lock(); known != nullptr && !known->is_lost()) return known;
  auto link = transport_->connect({.peer = number, .name = std::string(name), .address = address});
  if (!link.is_ok()) return link.status();
  auto made =
      std::make_shared<RemotePeer>(*this, number, std::string(name), std::move(link).value());
  by_address_[address] = made;
  return made;
}

Result<std::string> RemoteAccess::call(const RemotePeer& peer, std::string_view service,
                                       std::string_view request, const Deadline& deadline) {
  const auto call = std::make_shared<Call>(peer.number_, deadline);
  const std::string reply_to = address();
  std::uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    number = ++last_call_;
    calls_[number] = call;
  }
  const std::string text = encode(
      CallRequest{.number = number, .reply_to = reply_to, .service = service, .body = request});
  Status status = peer.link().send({static_cast<std::uint64_t>(MessageKind::kRequest)},
                                   bytes_of(text), deadline);
  {
    MutexLock lock(call->mutex);
    while (status.is_ok() && !call->is_over)
      if (!wait_interruptibly(call->changed, call->mutex, call->until) && !call->is_over)
        status = end_of_wait(fmt::format("{} did not answer in time", peer.name()));
    const bool had_left = status.code() == Code::kPeerLost && peer.has_left();
    if (had_left || (status.code() == Code::kTimeout && call->has_left))
      status = Status(Code::kNotFound, fmt::format("{} has left", peer.name()));
  }
  MutexLock lock(mutex_);
  calls_.erase(number);
  if (!status.is_ok()) return status;
  MutexLock call_lock(call->mutex);
  return std::move(call->answer);
}

void RemoteAccess::on_message(int peer, std::uint64_t kind, std::string_view bytes) {
  if (kind == static_cast<std::uint64_t>(MessageKind::kRequest)) on_request(peer, bytes);
  if (kind == static_cast<std::uint64_t>(MessageKind::kReply)) on_reply(bytes);
}

// Drops the links, so that the next call makes a new one. Returns the calls that wait for the peer.
std::vector<std::shared_ptr<RemoteAccess::Call>> RemoteAccess::drop_links(int peer, bool has_left) {
  std::vector<std::shared_ptr<Call>> waiting;
  std::map<std::string, std::shared_ptr<RemotePeer>> dropped;  // without the lock
  MutexLock lock(mutex_);
  for (const auto& [number, call] : calls_)
    if (call->peer == peer) waiting.push_back(call);
  for (auto it = callers_.begin(); it != callers_.end();)
    if (const auto now = it++; now->second->number_ == peer) dropped.insert(callers_.extract(now));
  std::erase_if(by_address_, [&](const auto& entry) {
    const auto known = entry.second.lock();
    if (known != nullptr && known->number_ == peer) {
      known->has_left_.store(has_left, std::memory_order_relaxed);
      known->mark_lost();
    }
    return known == nullptr || known->is_lost();
  });
  return waiting;
}

void RemoteAccess::on_peer_lost(int peer, const Status& why) {
  for (const auto& call : drop_links(peer, false))
    call->end(Status(Code::kPeerLost, why.message()));
}

void RemoteAccess::exclude(const MemberIdentity& who) {
  const Status why(Code::kPeerLost, "it is not a member of the store any more");
  transport_->exclude(number_of(who), why);
  on_peer_lost(number_of(who), why);
}

void RemoteAccess::on_peer_left(int peer) {
  for (const auto& call : drop_links(peer, true)) call->note_left();
}

// Drops bytes that are not a request.
void RemoteAccess::on_request(int peer, std::string_view bytes) {
  ByteReader reader(bytes);
  const std::uint64_t number = reader.u64();
  const std::string caller(reader.text());
  const std::string service(reader.text());
  const std::string body(reader.text());
  if (!reader.is_finished()) return;
  {
    MutexLock lock(mutex_);
    if (is_closed_) return;
    ++answering_;
  }
  reply_to(peer, caller, encode_reply(number, services_.answer(service, body)));
  MutexLock lock(mutex_);
  if (--answering_ == 0) answered_.notify_all();
}

// A caller that is gone needs no answer. Its name is not known here, and the messages of later
// calls to it have this one.
void RemoteAccess::reply_to(int peer, const std::string& address, std::string_view reply) {
  const std::string where = address.substr(address.find('/') + 1);  // after the secret
  auto caller = connect(peer, fmt::format("the process at {}", where), address);
  if (!caller.is_ok()) return;
  static_cast<void>(
      (*caller)->link().post({static_cast<std::uint64_t>(MessageKind::kReply)}, bytes_of(reply)));
  std::map<std::string, std::shared_ptr<RemotePeer>> dropped;  // without the lock
  MutexLock lock(mutex_);
  if (callers_.size() >= kMostCallers) callers_.swap(dropped);
  callers_[address] = std::move(caller).value();
}

void RemoteAccess::on_reply(std::string_view bytes) {
  ByteReader reader(bytes);
  const std::uint64_t number = reader.u64();
  const auto code = static_cast<Code>(reader.u8());
  std::string text(reader.text());
  if (!reader.is_finished() || code > Code::kInternal) return;
  std::shared_ptr<Call> call;
  {
    MutexLock lock(mutex_);
    if (const auto found = calls_.find(number); found != calls_.end()) call = found->second;
  }
  if (call == nullptr) return;  // given up
  call->end(code == Code::kOk ? Result<std::string>(std::move(text))
                              : Result<std::string>(Status(code, std::move(text))));
}

}  // namespace memspan
