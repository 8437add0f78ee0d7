// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/peers.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "fabric/transfer/endpoint_name.h"
#include "fabric/transfer/near_peer.h"
#include "fabric/transfer/remote_endpoint.h"

namespace memspan::transfer {
namespace {

// For one record, of a store that can be reached.
constexpr Duration kLookPatience = std::chrono::seconds(1);
// A peer has one spelling, or a few. If there are more than this, all are looked up again.
constexpr std::size_t kMostSpellings = 8192;
// How many of the dead are remembered.
constexpr std::size_t kMostDeparted = 8192;

}  // namespace

Peers::~Peers() {
  member_->remove_renewal(renewal_);
  const Deadline deadline = Deadline::after(kPatience);
  MutexLock lock(mutex_);
  for (auto& [name, known] : by_name_) {
    [[maybe_unused]] const Status over = member_->store().unwatch(known->watch, deadline);
    std::shared_ptr<Peer> peer;  // ends without its lock
    MutexLock known_lock(known->mutex);
    peer = known->replace(nullptr);
  }
}

Result<std::shared_ptr<Peer>> Peers::find(std::string_view name, Waiting waiting) {
  std::shared_ptr<Peer> peer;
  {
    MutexLock lock(mutex_);
    if (const auto known = by_spelling_.find(name); known != by_spelling_.end()) {
      MutexLock known_lock(known->second->mutex);
      peer = known->second->peer;
    }
  }
  if (peer != nullptr && peer->is_live()) [[likely]]
    return peer;
  auto normal = normal_name(name);
  if (!normal.is_ok()) return normal.status();
  auto attached = attach(*normal, waiting);
  if (!attached.is_ok()) return attached;
  MutexLock lock(mutex_);
  if (by_spelling_.size() >= kMostSpellings) by_spelling_.clear();
  if (const auto known = by_name_.find(*normal); known != by_name_.end())
    by_spelling_.insert_or_assign(std::string(name), known->second);
  return attached;
}

std::shared_ptr<Peer> Peers::known_peer(const std::string& name) {
  MutexLock lock(mutex_);
  const auto known = by_name_.find(name);
  if (known == by_name_.end()) return nullptr;
  return peer_of(*known->second);
}

std::shared_ptr<Peer> Peers::peer_of(Known& known) {
  MutexLock lock(known.mutex);
  return known.peer;
}

// Threads that want the same peer at the same time may each get as far as the broker; the first
// that comes back counts.
Result<std::shared_ptr<Peer>> Peers::attach(const std::string& name, Waiting waiting) {
  const Deadline deadline = Deadline::after(kPatience);
  if (auto peer = known_peer(name); peer != nullptr && peer->is_live()) return peer;
  reap(deadline);
  if (Status away = member_->store_state(); !away.is_ok()) {
    // No other process can have taken the name since.
    if (Status why = departed(name).why; !why.is_ok()) return why;
    if (waiting == Waiting::kNone)
      return away.annotate(fmt::format("asking the store for endpoint {}", name));
  }
  auto record = ask_store(name, deadline);
  if (!record.is_ok()) return record.status();
  MEMSPAN_PASS(check_reach(*record));
  auto known = watched(name, deadline);
  if (!known.is_ok()) return known.status();
  // Changes are reported from now on, so that a second look misses none.
  record = ask_store(name, deadline);
  if (!record.is_ok()) return record.status();
  MEMSPAN_PASS(check_reach(*record));
  const bool is_own = record->who == member_->identity();
  const auto transport = is_own ? Result<std::string_view>("cma")
                                : member_->choose_transport(record->who, {"cma", "message"});
  if (!transport.is_ok())
    return transport.status().annotate(fmt::format("reaching endpoint {}", name));
  const auto attach_to = *transport == "cma" ? NearPeer::attach : RemoteEndpoint::attach;
  auto peer = attach_to(
      member_, *record, [down = on_peer_down_, name] { (*down)(name); }, deadline);
  if (!peer.is_ok()) return peer;
  std::shared_ptr<Peer> before;  // ends without the lock
  MutexLock lock((*known)->mutex);
  auto& current = (*known)->peer;
  if (current != nullptr && current->is_live()) return current;
  before = (*known)->replace(*peer);
  return current;
}

void Peers::reap(Deadline deadline) {
  std::vector<std::shared_ptr<Known>> ended;
  {
    MutexLock lock(mutex_);
    if (departed_.size() >= kMostDeparted) departed_.clear();
    for (auto it = by_name_.begin(); it != by_name_.end();) {
      const std::shared_ptr<Peer> peer = peer_of(*it->second);
      if (peer == nullptr || peer->is_live()) {
        ++it;
        continue;
      }
      departed_.insert_or_assign(
          it->first, Departed{peer->record().generation, peer->renewals(), peer->why_not_live()});
      ended.push_back(it->second);
      std::erase_if(by_spelling_, [&](const auto& entry) { return entry.second == it->second; });
      it = by_name_.erase(it);
    }
  }
  for (const auto& known : ended) {
    [[maybe_unused]] const Status over = member_->store().unwatch(known->watch, deadline);
    std::shared_ptr<Peer> peer;  // ends without its lock
    MutexLock lock(known->mutex);
    peer = known->replace(nullptr);
  }
}

Peers::Departed Peers::departed(const std::string& name) {
  MutexLock lock(mutex_);
  const auto found = departed_.find(name);
  return found != departed_.end() ? found->second : Departed{};
}

Result<EndpointRecord> Peers::ask_store(const std::string& name, Deadline deadline) {
  auto bytes = member_->store().get_now(record_key(name), deadline);
  if (!bytes.is_ok() && bytes.code() != Code::kNotFound)
    return bytes.status().annotate(fmt::format("asking the store for endpoint {}", name));
  const Departed before = departed(name);
  if (!bytes.is_ok())
    return before.why.is_ok()
               ? Status(Code::kNotFound,
                        fmt::format("there is no endpoint {} at the store{}", name, kNoEndpoint))
               : before.why;
  auto record = decode_record(*bytes);
  // Its process has ended and the store has yet to notice. One that has written its record again
  // since lives.
  if (record.is_ok() && record->generation == before.generation &&
      record->renewals <= before.renewals)
    return before.why;
  return record;
}

Status Peers::check_reach(const EndpointRecord& record) const {
  if (!may_reach(role_, record.role))
    return {Code::kInvalidArgument,
            fmt::format("endpoint {} has the role {} and this one {}: senders and receivers reach "
                        "the other kind, or BOTH",
                        record.name, role_name(record.role), role_name(role_))};
  return Status::ok();
}

Result<std::shared_ptr<Peers::Known>> Peers::watched(const std::string& name, Deadline deadline) {
  {
    MutexLock lock(mutex_);
    if (const auto known = by_name_.find(name); known != by_name_.end()) return known->second;
  }
  auto made = std::make_shared<Known>();
  auto watch = member_->store().watch(
      record_key(name),
      [weak = std::weak_ptr(made)](const StoreChange& change) {
        if (const auto noted = weak.lock()) note_change(*noted, change);
      },
      deadline);
  if (!watch.is_ok()) return watch.status().annotate(fmt::format("watching endpoint {}", name));
  made->watch = *watch;
  std::shared_ptr<Known> known;
  {
    MutexLock lock(mutex_);
    known = by_name_.try_emplace(name, made).first->second;
  }
  if (known != made) {  // another thread has come before
    [[maybe_unused]] const Status over = member_->store().unwatch(*watch, deadline);
  }
  return known;
}

void Peers::note_record(Peer& peer, std::string_view bytes) {
  const auto now = decode_record(bytes);
  if (now.is_ok() && now->generation == peer.record().generation)
    peer.note_renewals(now->renewals);
  else
    peer.note_replaced();
}

void Peers::note_change(Known& known, const StoreChange& change) {
  Peer* peer = nullptr;
  {
    MutexLock lock(known.mutex);
    peer = known.peer.get();
    if (peer == nullptr) return;
    known.is_noting = true;
  }
  const bool is_record = change.key == record_key(peer->record().name);
  if (change.key == destroyed_key(peer->record())) peer->note_destroyed();
  if (is_record && change.event == StoreEvent::kRemoved) peer->note_left();
  if (is_record && change.event == StoreEvent::kSet) note_record(*peer, change.value);
  MutexLock lock(known.mutex);
  known.is_noting = false;
  known.returned.notify_all();
}

void Peers::settle() {
  std::vector<std::shared_ptr<Peer>> live;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, known] : by_name_)
      if (auto peer = peer_of(*known); peer != nullptr && peer->is_live())
        live.push_back(std::move(peer));
  }
  for (const auto& peer : live) {
    const auto bytes =
        member_->store().get_now(record_key(peer->record().name), Deadline::after(kLookPatience));
    if (bytes.code() == Code::kNotFound) {
      peer->note_left();
      continue;
    }
    if (!bytes.is_ok()) return;  // lost again
    note_record(*peer, *bytes);
  }
}

}  // namespace memspan::transfer
