// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/peers.h"

#include <mutex>

namespace memspan::transfer {
namespace {

MEMSPAN_REMEDY(kNotRegistered, "not-registered",
               "The peer has not registered this memory, or not all of its bytes.",
               "Register it on the peer before the transfer begins, up to the last byte.");
MEMSPAN_REMEDY(kNoEndpoint, "no-endpoint", "No process has an endpoint of that name at this store.",
               "Compare the name and the store URL of both processes; is the peer running?");

// For one record, of a store that can be reached.
constexpr Duration kLookPatience = std::chrono::seconds(1);
// How many of the dead are remembered.
constexpr std::size_t kMostDeparted = 8192;

}  // namespace

Status Peer::refusal(const Piece& piece, std::uint64_t number) {
  return {Code::kNotFound,
          fmt::format(
              "piece {}: {} bytes at {:#x} are not entirely in what endpoint {} has registered; "
              "{}{}",
              number, piece.bytes, piece.remote, record_.name, nearest(piece), kNotRegistered)};
}

const std::atomic<std::uint64_t> Peer::kAlwaysOpen{table_layout::kOpen};

bool Peer::is_live() {
  if (has_ended()) return false;
  if (state_->load(std::memory_order_acquire) != table_layout::kOpen) {
    end(End::kEnded);
    return false;
  }
  // No process number comes again within a tick, since all others are given out before.
  const Clock::rep now = last_tick().time_since_epoch().count();
  if (now == looked_at_.load(std::memory_order_relaxed)) return true;
  if (is_gone()) {
    end(End::kDied);
    return false;
  }
  looked_at_.store(now, std::memory_order_relaxed);
  return true;
}

Status Peer::why_not_live() const {
  const End end = end_.load(std::memory_order_acquire);
  if (end == End::kNone) [[likely]]
    return Status::ok();
  const auto text = [this](const char* what) {
    const bool is_remote = state_ == &kAlwaysOpen;
    return fmt::format(
        "{}: {} {}", record_.name,
        is_remote ? record_.who.name() : fmt::format("process {}", record_.who.process), what);
  };
  if (end == End::kEnded)
    return {Code::kNotFound, "there is no endpoint " + text("has destroyed it") + kNoEndpoint};
  // The store may notice a death before the process is quite gone.
  const char* const what = end == End::kDied || is_gone() ? "has died"
                           : end == End::kLost
                               ? "cannot be reached: it has died, is stopped or is cut off"
                               : "has left the store, or begun another program";
  return {Code::kPeerLost, "endpoint " + text(what)};
}

Peers::~Peers() {
  member_->remove_renewal(renewal_);
  std::optional<std::uint64_t> watch;
  {
    MutexLock lock(known_->mutex);
    watch = known_->watch;
  }
  if (watch)
    member_->tell_end(
        [&](const Deadline& deadline) { return member_->store().unwatch(*watch, deadline); });
  decltype(known_->by_name) by_name;  // ends without the lock
  MutexLock lock(known_->mutex);
  known_->await_watches();
  by_name.swap(known_->by_name);
}

Result<std::shared_ptr<Peer>> Peers::find(std::string_view name, Waiting waiting) {
  if (auto peer = known(name); peer != nullptr) [[likely]]
    return peer;
  MEMSPAN_PASS_ASSIGN(auto normal, normal_name(name));
  return attach(normal, waiting);
}

// Threads that want the same peer at the same time may each get as far as the broker; the first
// that comes back counts.
Result<std::shared_ptr<Peer>> Peers::attach(const std::string& name, Waiting waiting) {
  const Deadline deadline = Deadline::after(kPatience);
  reap();
  if (Status away = member_->store_state(); !away.is_ok()) {
    // No other process can have taken the name since.
    if (Status why = departed(name).why; !why.is_ok()) return why;
    if (waiting == Waiting::kNone)
      return away.annotate(fmt::format("asking the store for endpoint {}", name));
  }
  MEMSPAN_PASS(watch_records(deadline));
  MEMSPAN_PASS_ASSIGN(auto record, ask_store(name, deadline));
  if (!may_reach(role_, record.role))
    return Status(Code::kInvalidArgument,
                  fmt::format("endpoint {} has the role {} and this one {}: senders and receivers "
                              "reach the other kind, or BOTH",
                              record.name, role_name(record.role), role_name(role_)));
  const bool is_own = record.who == member_->identity();
  MEMSPAN_TRY_ASSIGN(const auto transport,
                     is_own ? Result<std::string_view>("cma")
                            : member_->choose_transport(record.who, {"cma", "message"}),
                     fmt::format("reaching endpoint {}", name));
  const auto attach_to = transport == "cma" ? attach_near : attach_remote;
  auto peer = attach_to(
      member_, record, [down = on_peer_down_, name] { down(name); }, deadline);
  if (!peer.is_ok()) return peer;
  std::shared_ptr<Peer> before;  // ends without the lock
  MutexLock lock(known_->mutex);
  known_->await_watches();
  auto& current = known_->by_name[name];
  if (current != nullptr && current->is_live()) return current;
  before = std::exchange(current, *peer);
  return current;
}

void Peers::reap() {
  if (const std::unique_lock use(recent_, std::try_to_lock); use) recent_.peer = nullptr;
  std::vector<std::shared_ptr<Peer>> ended;  // end without the lock
  MutexLock lock(known_->mutex);
  known_->await_watches();
  if (known_->departed.size() >= kMostDeparted) known_->departed.clear();
  std::erase_if(known_->by_name, [&](auto& entry) MEMSPAN_REQUIRES(known_->mutex) {
    auto& [name, peer] = entry;
    if (peer->is_live()) return false;
    known_->departed.insert_or_assign(
        name, Departed{peer->record().generation, peer->renewals(), peer->why_not_live()});
    ended.push_back(std::move(peer));
    return true;
  });
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

Status Peers::watch_records(Deadline deadline) {
  {
    MutexLock lock(known_->mutex);
    if (known_->watch) return Status::ok();
  }
  const auto on_change = [weak = std::weak_ptr(known_)](const StoreChange& change) {
    if (const auto known = weak.lock()) note_change(*known, change);
  };
  MEMSPAN_TRY_ASSIGN(const std::uint64_t watch,
                     member_->store().watch(kRecordsPrefix, on_change, deadline),
                     "watching endpoints");
  {
    MutexLock lock(known_->mutex);
    if (!known_->watch) {
      known_->watch = watch;
      return Status::ok();
    }
  }
  // Another thread was faster.
  static_cast<void>(member_->store().unwatch(watch, deadline));
  return Status::ok();
}

void Peers::note_change(Known& known, const StoreChange& change) {
  Peer* peer = nullptr;
  {
    MutexLock lock(known.mutex);
    const auto found = known.by_name.find(name_of_key(change.key));
    if (found == known.by_name.end()) return;
    peer = found->second.get();
    ++known.noting;
  }
  const bool is_record = change.key == record_key(peer->record().name);
  if (change.key == destroyed_key(peer->record())) peer->note_destroyed();
  if (is_record && change.event == StoreEvent::kRemoved) peer->note_left();
  if (is_record && change.event == StoreEvent::kSet) peer->note_record(change.value);
  MutexLock lock(known.mutex);
  --known.noting;
  known.returned.notify_all();
}

void Peers::settle() {
  std::vector<std::shared_ptr<Peer>> live;
  {
    MutexLock lock(known_->mutex);
    for (const auto& [name, peer] : known_->by_name)
      if (peer->is_live()) live.push_back(peer);
  }
  for (const auto& peer : live) {
    const auto bytes =
        member_->store().get_now(record_key(peer->record().name), Deadline::after(kLookPatience));
    if (bytes.code() == Code::kNotFound) {
      peer->note_left();
      continue;
    }
    if (!bytes.is_ok()) return;  // lost again
    peer->note_record(*bytes);
  }
}

}  // namespace memspan::transfer
