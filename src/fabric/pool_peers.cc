// SPDX-License-Identifier: Apache-2.0
// A pool's view of its other members: membership events, their memory mapped here or reached by
// links, and waiting for them.
#include <fmt/ranges.h>

#include "core/environment.h"
#include "core/interrupt.h"
#include "fabric/pool.h"

namespace memspan::inline fabric {
namespace {

// How late a wait notices the end of the store. Each look costs a round trip.
constexpr auto kStoreLook = std::chrono::milliseconds(200);

}  // namespace

// ---- membership events

void Pool::on_membership_event(const StoreChange& change) {
  const auto name = std::string_view(change.key).substr(members_prefix().size());
  const auto parsed = parse_integer("a member's rank", name, 0, std::int64_t{options_.ranks} - 1);
  if (!parsed.is_ok()) return;
  const auto rank = static_cast<std::uint32_t>(*parsed);
  if (rank == options_.rank) return;
  if (change.event == StoreEvent::kSet)
    on_peer_joined(rank, change.value);
  else
    on_peer_left(rank);
}

void Pool::on_peer_joined(std::uint32_t rank, const std::string& text) {
  auto record = decode_record<Record>(text, "member");
  if (!record.is_ok()) return;
  {
    MutexLock lock(mutex_);
    if (peers_[rank].record.generation == record->generation || peers_[rank].next == text) return;
  }
  on_peer_left(rank);  // an earlier one, whose end we have not heard of yet
  MutexLock lock(mutex_);
  Peer& peer = peers_[rank];
  // The events and the list of a join may bring the same record at the same time.
  if (join_ == 0 || peer.stage != Peer::Stage::kAbsent) return;
  mappers_.admit(rank, record->generation);
  if (!is_unmapped(rank)) {
    peer.next = text;
    return;
  }
  peer.record = std::move(record).value();
  ++peer.events;
  if (peer.record.tag != options_.tags.tag) is_restricted_.store(true, std::memory_order_release);
  peer.stage = Peer::Stage::kFetching;
  const auto transport = member_->choose_transport(peer.record.who, {"mapped", "message"});
  if (!transport.is_ok()) {
    peer.stage = Peer::Stage::kFailed;
    peer.why = transport.status().annotate(fmt::format("rank {}", rank));
  } else if (*transport == "mapped") {
    peer.fetch = member_->broker().fetch(
        peer.record.broker_address, published_name(rank),
        [this, rank, events = peer.events](Result<FetchedDescriptors> answer) {
          on_fetched(rank, events, std::move(answer));
        });
  } else {
    peer.stage = Peer::Stage::kRemote;
    is_spread_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
}

void Pool::on_fetched(std::uint32_t rank, std::uint64_t events, Result<FetchedDescriptors> answer) {
  std::vector<RankWindows*> unused;
  {
    MutexLock lock(mutex_);
    Peer& peer = peers_[rank];
    if (peer.events != events) return;
    // If the broker is closed, or no longer offers the memory, the member ends or leaves.
    Status status = answer.is_ok() ? map_contributions(rank, std::move(answer).value())
                                   : Status(Code::kPeerLost, answer.status().message());
    peer.stage = status.is_ok() ? Peer::Stage::kMapped : Peer::Stage::kFailed;
    if (!status.is_ok()) unused = retire(rank);
    const bool is_gone = status.code() == Code::kPeerLost;
    peer.why = status.annotate(fmt::format("rank {}, process {}{}", rank, peer.record.who.process,
                                           is_gone ? ", is not in the pool (any more)" : ""));
    changed_.notify_all();
  }
  unmap(unused, rank);
}

Status Pool::map_contributions(std::uint32_t rank, FetchedDescriptors answer) {
  const Record& record = peers_[rank].record;
  auto descriptor = answer.descriptors.begin();
  if (descriptor == answer.descriptors.end())
    return {Code::kInternal, "it offers something else than it said"};
  MEMSPAN_PASS_ASSIGN(auto opened, MapperTable::open(std::move(*descriptor++), options_.ranks));
  // The windows use it from their first mapping on.
  MapperTable& mappers = *(peers_[rank].mappers = std::make_shared<MapperTable>(std::move(opened)));
  const std::uint64_t join = peers_[rank].mapped_in = join_;
  const Admission admission = mappers.admission(options_.rank, join);
  for (const RangeKind kind : kRangeKinds) {
    const std::uint64_t bytes = record.bytes[index_of(kind)];
    if (bytes == 0) continue;
    if (descriptor == answer.descriptors.end() || bytes > windows(kind).stride())
      return {Code::kInternal, "it offers something else than it said"};
    MEMSPAN_PASS_ASSIGN(auto memory, adopt(kind, std::move(*descriptor), record));
    if (memory->bytes() < bytes) return {Code::kInternal, "it offers less memory than it said"};
    MEMSPAN_PASS(windows(kind).map(rank, *memory, bytes, admission));
    ++descriptor;
  }
  mappers.set_mapped(options_.rank, join);
  return Status::ok();
}

// Copies that hold the peer's memory unmap it later. The fetch is forgotten even if it has been
// answered, because on_fetched() may still run. Without the lock: it may be waiting for that.
void Pool::on_peer_left(std::uint32_t rank) {
  if (rank == options_.rank) return;
  std::uint64_t fetch = 0;
  std::optional<MemberIdentity> remote;
  std::vector<RankWindows*> unused;
  {
    MutexLock lock(mutex_);
    Peer& peer = peers_[rank];
    mappers_.admit(rank, MapperTable::kEnded);
    if (peer.stage == Peer::Stage::kAbsent && peer.next.empty()) return;
    if (peer.stage == Peer::Stage::kRemote && join_ != 0) remote = std::move(peer.record.who);
    fetch = std::exchange(peer.fetch, 0);
    unused = retire(rank);
    peer = {
        .events = peer.events + 1, .mappers = std::move(peer.mappers), .mapped_in = peer.mapped_in};
    changed_.notify_all();
    if (peer.mappers != nullptr) peer.mappers->notify();
  }
  unmap(unused, rank);
  if (fetch != 0) member_->broker().forget(fetch);
  if (remote) member_->exclude_if_ended(*remote);
}

// By the last user, without the lock. The rank may be in the pool again by then.
void Pool::unmap(const std::vector<RankWindows*>& unused, std::uint32_t rank) {
  for (RankWindows* const each : unused) each->unmap(rank);
  std::string next;
  {
    MutexLock lock(mutex_);
    Peer& peer = peers_[rank];
    if (peer.stage != Peer::Stage::kAbsent || !is_unmapped(rank)) return;
    if (peer.mappers != nullptr) peer.mappers->clear_mapped(options_.rank, peer.mapped_in);
    peer.mappers.reset();
    next = std::exchange(peer.next, {});
  }
  if (!next.empty()) on_peer_joined(rank, next);
}

// ---- for copies

Result<std::uint64_t> Pool::await(std::uint32_t rank, RangeKind kind, Deadline deadline) {
  if (rank == options_.rank) return contribution(kind).bytes;
  MutexLock lock(mutex_);
  bool has_asked_store = false;
  while (true) {
    const Peer& peer = peers_[rank];
    if (join_ == 0)
      return Status(Code::kUnreachable,
                    fmt::format("rank {} is reached after this process has joined the pool", rank));
    const bool is_admitted =
        peer.stage == Peer::Stage::kRemote ||
        (peer.stage == Peer::Stage::kMapped && peer.mappers->admitted(options_.rank) == join_);
    if (is_admitted) return peer.record.bytes[index_of(kind)];
    if (peer.stage == Peer::Stage::kFailed) return peer.why;
    if (peer.stage == Peer::Stage::kMapped) {
      MEMSPAN_PASS(await_admission(rank, deadline));
    } else if (peer.stage == Peer::Stage::kAbsent) {
      if (std::exchange(has_asked_store, true)) return gone(rank);
      MEMSPAN_PASS(await_event(rank, deadline));
    } else if (!wait_interruptibly(changed_, mutex_, deadline)) {
      return end_of_wait(fmt::format("rank {} did not hand over its memory in time", rank));
    }
  }
}

Result<std::shared_ptr<const RemoteWindow>> Pool::remote_window(std::uint32_t rank, RangeKind kind,
                                                                Deadline deadline) {
  using Window = std::shared_ptr<const RemoteWindow>;
  Record record;
  {
    MutexLock connecting(connecting_);
    {
      MutexLock lock(mutex_);
      if (peers_[rank].stage != Peer::Stage::kRemote) return Window();
      const Window& known = peers_[rank].windows[index_of(kind)];
      if (known != nullptr && !known->peer->is_lost()) return known;
      record = peers_[rank].record;
    }
    auto windows = connect(rank, record, deadline);
    if (windows.is_ok()) {
      MutexLock lock(mutex_);
      if (peers_[rank].record.generation == record.generation) peers_[rank].windows = *windows;
      Window window = (*windows)[index_of(kind)];
      if (window != nullptr) return window;
      return Status(Code::kInternal, fmt::format("rank {} gave no memory of that kind", rank));
    }
    if (windows.code() != Code::kStale) return windows.status();
  }
  MEMSPAN_PASS(await_rejoin(rank, record.generation, deadline));
  return Window();
}

Result<Pool::RemoteWindows> Pool::connect(std::uint32_t rank, const Record& record,
                                          const Deadline& deadline) {
  const auto check_presence = [&](const Deadline& until) {
    return check_record(rank, record.generation, until);
  };
  std::shared_ptr<RemotePeer> remote;
  auto answer = Result<std::string>(Status(Code::kPeerLost, "not tried"));
  // Twice: the way back of an answer may be cut together with an earlier link.
  for (int tries = 0; tries < 2 && answer.code() == Code::kPeerLost; ++tries) {
    MEMSPAN_TRY_ASSIGN(remote, member_->remote_peer(record.who, check_presence, deadline),
                       fmt::format("rank {}", rank));
    answer = remote->call(published_name(rank), encode_record(record.generation), deadline);
  }
  // It has left, and offers no windows or those of a later join.
  if (answer.code() == Code::kNotFound) return Status(Code::kStale, answer.status().message());
  if (!answer.is_ok()) return answer.status().annotate(fmt::format("rank {}", rank));
  FieldReader reader(*answer);
  RemoteWindows windows;
  for (auto& window : windows) {
    std::string text;
    reader(text);
    if (text.empty()) continue;
    MEMSPAN_PASS_ASSIGN(auto region, RemoteRegion::decode(text));
    window = std::make_shared<const RemoteWindow>(
        RemoteWindow{remote, std::move(region), rank, record.generation,
                     fmt::format("rank {}, {}", rank, record.who.name())});
  }
  if (!reader.is_finished())
    return Status(Code::kInternal, "a description of windows is malformed");
  return windows;
}

// Runs on a thread that takes messages, so it does not wait for another process.
Result<std::string> Pool::describe_windows(std::string_view request) {
  MutexLock lock(exposing_);
  if (generation_ == 0 || request != encode_record(generation_))
    return Status(Code::kStale, "this rank has left the pool since");
  MEMSPAN_PASS_ASSIGN(auto access, member_->remote_access());
  FieldWriter writer;
  for (const RangeKind kind : kRangeKinds) {
    auto& region = exposed_[index_of(kind)];
    if (region == nullptr && contribution(kind).bytes > 0) {
      MEMSPAN_PASS_ASSIGN(
          region, access->expose(windows(kind).begin_of(options_.rank), contribution(kind).bytes,
                                 kind == RangeKind::kHost ? host_device() : device()));
    }
    writer(region == nullptr ? std::string() : region->describe().encode());
  }
  return writer.take();
}

Status Pool::gone(std::uint32_t rank) {
  return {Code::kPeerLost,
          fmt::format("rank {} is not in the pool: it has not joined, left, or ended", rank)};
}

// The store may know of a join whose event has not arrived. The store's answer follows the events
// on the same connection, so a different record means that the events are on their way.
Status Pool::await_event(std::uint32_t rank, const Deadline& deadline) {
  const std::uint64_t events = peers_[rank].events;
  const std::uint64_t known = peers_[rank].record.generation;
  mutex_.unlock();
  Status record = check_record(rank, known, deadline);
  mutex_.lock();
  if (record.is_ok() || record.code() == Code::kPeerLost) return gone(rank);
  if (record.code() != Code::kStale) return record;
  while (peers_[rank].events == events && join_ != 0)
    if (!wait_interruptibly(changed_, mutex_, deadline))
      return end_of_wait(peers_[rank].next.empty()
                             ? fmt::format("no news of rank {} came in time", rank)
                             : fmt::format("rank {} {}", rank, kIsHeld));
  return Status::ok();
}

// For a member on this host that does not admit this process: it has not heard of the join yet, or
// has heard of its end.
Status Pool::await_admission(std::uint32_t rank, const Deadline& deadline) {
  const std::shared_ptr<MapperTable> table = peers_[rank].mappers;
  const std::uint64_t events = peers_[rank].events;
  const std::uint64_t join = join_;
  mutex_.unlock();
  Status status = check_record(options_.rank, join, deadline);
  const std::uint64_t admitted = table->admitted(options_.rank);
  const auto is_over = [&] {
    if (table->admitted(options_.rank) == join) return true;
    MutexLock lock(mutex_);
    return peers_[rank].events != events || join_ != join;
  };
  if (status.is_ok() && !table->wait(deadline, is_over))
    status =
        end_of_wait(fmt::format("rank {} did not notice in time that this process has joined "
                                "the pool",
                                rank));
  mutex_.lock();
  const bool is_taken =
      status.code() == Code::kStale ||
      (status.code() == Code::kStoreLost && admitted != 0 && admitted != MapperTable::kEnded);
  const bool has_ended = status.code() == Code::kPeerLost ||
                         (status.code() == Code::kStoreLost && admitted == MapperTable::kEnded);
  if (!is_taken && !has_ended) return status;
  return {Code::kUnreachable,
          fmt::format("this process lost its rank {} in the pool, because its lease at the store "
                      "ended{}. Leave the store and join it again",
                      options_.rank, is_taken ? "; another process has the rank" : "")};
}

Status Pool::check_reachability(std::uint32_t from, std::uint32_t to) {
  MutexLock lock(mutex_);
  const auto tag_of = [&](std::uint32_t rank) MEMSPAN_REQUIRES(mutex_) {
    return rank == options_.rank ? options_.tags.tag : peers_[rank].record.tag;
  };
  const std::string one = tag_of(from), other = tag_of(to);
  if (options_.tags.allows(one, other)) return Status::ok();
  return {Code::kUnreachable,
          fmt::format("no operation leads from rank {} (tag \"{}\") to rank {} (tag \"{}\"): "
                      "tagOpInfo has none for these tags",
                      from, one, to, other)};
}

Status Pool::await_members(std::uint32_t count, const Deadline& deadline) {
  return await_presence(0, options_.ranks, deadline, [&](Duration waited) MEMSPAN_REQUIRES(mutex_) {
    std::vector<std::uint32_t> present;
    for (std::uint32_t rank = 0; rank < options_.ranks; ++rank)
      if (rank == options_.rank || peers_[rank].is_present()) present.push_back(rank);
    if (present.size() >= count) return Status::ok();
    return Status(Code::kTimeout,
                  fmt::format("{} of {} members are in the pool ({}) after {:.3f} s",
                              present.size(), count, fmt::join(present, ", "), to_seconds(waited)));
  });
}

Status Pool::await_member(std::uint32_t rank, const Deadline& deadline) {
  return await_presence(rank, rank + 1, deadline, [&](Duration waited) MEMSPAN_REQUIRES(mutex_) {
    if (rank == options_.rank || peers_[rank].is_present()) return Status::ok();
    return Status(Code::kTimeout,
                  fmt::format("rank {} {} after {:.3f} s", rank,
                              !peers_[rank].next.empty() ? kIsHeld
                              : peers_[rank].stage == Peer::Stage::kFetching
                                  ? "is in the pool, but did not hand over its memory"
                                  : "is not in the pool",
                              to_seconds(waited)));
  });
}

// Fails if one of the ranks in [first, end) leaves.
template <typename Look>
Status Pool::await_presence(std::uint32_t first, std::uint32_t end, const Deadline& deadline,
                            Look look) {
  const auto began = Clock::now();
  MutexLock lock(mutex_);
  // An absent member may have one more event: its join.
  std::vector<std::uint64_t> allowed(options_.ranks);
  for (std::uint32_t rank = first; rank < end; ++rank)
    allowed[rank] = peers_[rank].events + (peers_[rank].stage == Peer::Stage::kAbsent ? 1 : 0);
  while (true) {
    if (join_ == 0 || ends_waits_)
      return {Code::kUnavailable, "this process has not joined the pool, or left it"};
    for (std::uint32_t rank = first; rank < end; ++rank) {
      if (peers_[rank].events > allowed[rank])
        return {Code::kPeerLost,
                fmt::format("rank {} left the pool, or ended, after {:.3f} s of this call", rank,
                            to_seconds(Clock::now() - began))};
      if (peers_[rank].stage == Peer::Stage::kFailed) return peers_[rank].why;
    }
    Status status = look(Clock::now() - began);
    if (status.is_ok() || deadline.has_passed()) return status;
    if (wait_interruptibly(changed_, mutex_, deadline.within(kStoreLook))) continue;
    status = end_of_wait("the time is over");
    if (status.code() != Code::kTimeout) return status;
    if (!deadline.has_passed()) MEMSPAN_PASS(ask_store(deadline));
  }
}

}  // namespace memspan::inline fabric
