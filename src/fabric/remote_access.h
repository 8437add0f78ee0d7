// SPDX-License-Identifier: Apache-2.0
// How this process reaches members on other hosts, and how they reach it: one message transport,
// a link for each of them, and calls.
//
//   peer.call("bm/7/0", request) ──message──► its Services ──message──► the answer
//
// Created when this process meets the first member on another host, or one whose memory this host's
// kernel does not move.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "core/interrupt.h"
#include "core/mutex.h"
#include "core/status.h"
#include "device/memory.h"
#include "net/own_addresses.h"
#include "store/fields.h"
#include "transport/message/message_transport.h"
#include "world/carrier_choice.h"

namespace memspan::inline fabric {

// The owner of a record in the store. A value.
struct MemberIdentity {
  std::uint64_t session = 0;  // at the store
  std::int64_t process = 0;
  Host host;

  // For messages.
  std::string name() const { return fmt::format("process {} on host {}", process, host.name); }
  static void fields(auto& codec, auto& self) {
    codec(self.session, self.process, self.host.id, self.host.name);
  }
  bool operator==(const MemberIdentity&) const = default;
};

// Services of this process for members on other hosts: functions by name that take a request.
// Thread-safe. Outlives the thread that calls answer().
class Services {
 public:
  // Must not wait for another process: it runs on a thread that takes the messages of all peers.
  // Must not add or remove a service.
  using Service = std::function<Result<std::string>(std::string_view request)>;

  // Replaces an earlier service of that name.
  void add(const std::string& name, Service service) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    by_name_[name] = std::move(service);
  }
  // Afterwards no call of the service runs.
  void remove(const std::string& name) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    by_name_.erase(name);
  }
  // kNotFound: no service has that name (any more).
  Result<std::string> answer(const std::string& name, std::string_view request)
      MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (const auto found = by_name_.find(name); found != by_name_.end())
      return found->second(request);
    return Status(Code::kNotFound, fmt::format("this process has no \"{}\" (any more)", name));
  }

 private:
  Mutex mutex_;  // held during a call
  std::map<std::string, Service> by_name_ MEMSPAN_GUARDED_BY(mutex_);
};

class RemoteAccess;

// A member on another host, as this process reaches it. Thread-safe; shared by all its users. Must
// not outlive the RemoteAccess.
class RemotePeer {
 public:
  RemotePeer(RemoteAccess& access, int number, std::string name, std::unique_ptr<Link> link)
      : access_(access), number_(number), name_(std::move(name)), link_(std::move(link)) {}

  // "process 12 on host b", for messages.
  const std::string& name() const { return name_; }
  Link& link() const { return *link_; }
  // Whether the link has ended, so that a new one is needed.
  bool is_lost() const {
    return is_lost_.load(std::memory_order_relaxed) || link_->state() != LinkState::kOpen;
  }
  void mark_lost() { is_lost_.store(true, std::memory_order_relaxed); }
  // Whether it said goodbye.
  bool has_left() const { return link_->state() == LinkState::kLeft; }
  // The answer or failure of the peer's service. kPeerLost and kTimeout name the peer. kNotFound:
  // the peer left the store before the call or without answering.
  Result<std::string> call(std::string_view service, std::string_view request, Deadline deadline);

 private:
  friend class RemoteAccess;
  RemoteAccess& access_;
  const int number_;
  const std::string name_;
  const std::unique_ptr<Link> link_;
  std::atomic<bool> is_lost_{false};
};

// Thread-safe.
class RemoteAccess {
 public:
  // Starts to serve. The destructor waits until requests in progress are answered. `services`
  // outlive it. `self` identifies this process to others.
  static Result<std::unique_ptr<RemoteAccess>> create(Services& services,
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
  // No link outlives the transport, and none is made while it ends.
  ~RemoteAccess() {
    {
      MutexLock lock(mutex_);
      is_ending_ = true;
      while (answering_ != 0) changed_.wait_until(mutex_, Deadline::never());
    }
    transport_.reset();
  }

  // Other processes pass it to connect().
  std::string address() const { return transport_->address(); }
  // Memory that peers may reach until the region is destroyed.
  Result<std::unique_ptr<ExposedRegion>> expose(void* base, std::uint64_t bytes, Device& device) {
    return transport_->expose({.base = static_cast<std::byte*>(base),
                               .bytes = bytes,
                               .kind = device.is_host() ? MemoryKind::kHost : MemoryKind::kDevice});
  }
  // The peer, if this process has a link to it that is not lost; else null.
  std::shared_ptr<RemotePeer> find(const MemberIdentity& who) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return known(who);
  }
  // As find(), but connects to the peer's address if that gives none.
  Result<std::shared_ptr<RemotePeer>> connect(const MemberIdentity& who, const std::string& address)
      MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (is_ending_) return Status(Code::kUnavailable, "this process leaves the store");
    std::erase_if(by_session_, [](const auto& entry) { return entry.second.expired(); });
    if (auto peer = known(who); peer != nullptr) return peer;
    auto link =
        transport_->connect({.peer = number_of(who), .name = who.name(), .address = address});
    auto made = std::make_shared<RemotePeer>(*this, number_of(who), who.name(), std::move(link));
    by_session_[who.session] = made;
    return made;
  }
  // Ends the connections with that member and refuses it from then on.
  void exclude(const MemberIdentity& who) MEMSPAN_EXCLUDES(mutex_) {
    const Status why(Code::kPeerLost, "it is not a member of the store any more");
    transport_->exclude(number_of(who), why);
    on_peer_lost(number_of(who), why);
  }
  // For a child of fork(): no peer then takes the child for this process.
  void forget_in_child() { transport_->forget_in_child(); }

 private:
  friend class RemotePeer;
  struct Call {
    const RemotePeer& peer;  // outlives it
    std::optional<Result<std::string>> answer = {};
  };
  // Kinds of messages.
  static constexpr std::uint64_t kRequest = 1, kReply = 2;
  explicit RemoteAccess(Services& services) : services_(services) {}
  // The number of a member in messages.
  static int number_of(const MemberIdentity& who) {
    return static_cast<int>(who.session & 0x7fff'ffff);
  }
  std::shared_ptr<RemotePeer> known(const MemberIdentity& who) const MEMSPAN_REQUIRES(mutex_) {
    const auto found = by_session_.find(who.session);
    auto peer = found == by_session_.end() ? nullptr : found->second.lock();
    return peer != nullptr && !peer->is_lost() ? peer : nullptr;
  }
  static std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  }
  // Drops the lost links, so that the next call makes a new one, and ends the calls that wait for
  // their answers. A connection that only the peer has made carries none of them.
  void on_peer_lost(int peer, const Status& why) MEMSPAN_EXCLUDES(mutex_) {
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
  void on_request(int peer, std::string_view bytes) MEMSPAN_EXCLUDES(mutex_) {
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
  void reply(int peer, std::uint64_t number, const Result<std::string>& answer) {
    FieldWriter writer;
    writer(number, answer.code(), answer.is_ok() ? *answer : answer.status().message());
    const Status sent = transport_->post_back(peer, {kReply}, bytes_of(writer.take()));
    if (sent.code() == Code::kInvalidArgument) reply(peer, number, sent);  // too long
  }
  void on_reply(std::string_view bytes) MEMSPAN_EXCLUDES(mutex_) {
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

  Services& services_;
  Mutex mutex_;
  // No link is made any more, and no request is answered, except for those in progress.
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  int answering_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // requests
  ConditionVariable changed_;
  std::uint64_t last_call_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  // Shared with the callers that wait.
  std::map<std::uint64_t, std::shared_ptr<Call>> calls_ MEMSPAN_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::weak_ptr<RemotePeer>> by_session_ MEMSPAN_GUARDED_BY(mutex_);
  std::unique_ptr<MessageTransport> transport_;  // its threads end before what they call
};

inline Result<std::string> RemotePeer::call(std::string_view service, std::string_view request,
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
  Status status =
      link_->send({RemoteAccess::kRequest}, RemoteAccess::bytes_of(writer.take()), deadline);
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

}  // namespace memspan::inline fabric
