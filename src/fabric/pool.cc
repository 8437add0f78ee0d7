// SPDX-License-Identifier: Apache-2.0
#include "fabric/pool.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/bytes.h"
#include "core/environment.h"
#include "core/interrupt.h"
#include "device/host/guarded_copy.h"
#include "device/numa.h"
#include "memory/address_plan.h"
#include "memory/budget.h"

namespace memspan {
namespace {

constexpr std::array<const char*, kSpaces> kSpaceNames{"host", "device"};
constexpr std::array<std::uint64_t, kSpaces> kLimits{kMostHostBytes, kMostDeviceBytes};
constexpr std::array<SpaceKind, kSpaces> kKinds{SpaceKind::kHost, SpaceKind::kDevice};
// So long a join or a leave waits for a member that does nothing.
constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kEndPatience = std::chrono::seconds(5);

std::uint64_t stride_of(const SliceWish& wish) {
  return align_up(wish.most, kHugePage);
}

Status check_slice(std::size_t space, const SliceWish& wish) {
  if (wish.bytes > kLimits[space])
    return {Code::kInvalidArgument,
            fmt::format("{} bytes of {} memory are given, allowed are up to {}", wish.bytes,
                        kSpaceNames[space], kLimits[space])};
  if (wish.bytes > wish.most)
    return {Code::kInvalidArgument,
            fmt::format("{} bytes of {} memory are given, more than the largest size of {}",
                        wish.bytes, kSpaceNames[space], wish.most)};
  return Status::ok();
}

// Of all ranks' stripes; kInvalidArgument when that is no number of bytes.
Result<std::uint64_t> space_bytes(const PoolOptions& options, std::size_t space) {
  const std::uint64_t most = options.slices[space].most;
  if (most > kPoolWindowBytes / options.ranks)
    return Status(Code::kInvalidArgument,
                  fmt::format("{} ranks of up to {} of {} memory need more addresses than pools "
                              "may have, {}",
                              options.ranks, format_size(most), kSpaceNames[space],
                              format_size(kPoolWindowBytes)));
  return stride_of(options.slices[space]) * options.ranks;
}

std::string layout_of(const PoolOptions& options) {
  return fmt::format("{} ranks with up to {} bytes of host and {} of device memory each",
                     options.ranks, stride_of(options.slices[0]), stride_of(options.slices[1]));
}

}  // namespace

struct Pool::Record {
  std::uint64_t generation = 0;  // of this join: no other has the same
  std::string host;
  std::string ticket;
  std::uint64_t process = 0;
  std::array<std::uint64_t, kSpaces> bytes = {};
  bool has_own_host_memory = true;  // not the caller's
  std::string tag;

  std::string encode() const {
    ByteWriter writer;
    writer.u64(generation);
    writer.text(host);
    writer.text(ticket);
    writer.u64(process);
    for (const std::uint64_t number : bytes) writer.u64(number);
    writer.u8(has_own_host_memory ? 1 : 0);
    writer.text(tag);
    return writer.take();
  }
  static std::optional<Record> decode(std::string_view text) {
    ByteReader reader(text);
    Record record;
    record.generation = reader.u64();
    record.host = reader.text();
    record.ticket = reader.text();
    record.process = reader.u64();
    for (std::uint64_t& number : record.bytes) number = reader.u64();
    record.has_own_host_memory = reader.u8() != 0;
    record.tag = reader.text();
    if (!reader.is_finished()) return std::nullopt;
    return record;
  }
};

Pool::Pool(std::shared_ptr<Member> member, PoolOptions options, AddressRange range,
           Attendance attendance)
    : member_(std::move(member)),
      options_(std::move(options)),
      range_(std::move(range)),
      host_(range_.reservation(), 0, stride_of(options_.slices[0]), options_.ranks),
      device_(range_.reservation(), host_.bytes(), stride_of(options_.slices[1]), options_.ranks),
      attendance_(std::move(attendance)),
      has_rules_(false),
      peers_(options_.ranks) {}

Result<std::unique_ptr<Pool>> Pool::create(std::shared_ptr<Member> member, PoolOptions options,
                                           Deadline deadline) {
  catch_copy_faults();
  std::uint64_t bytes = 0;
  for (std::size_t space = 0; space < kSpaces; ++space) {
    MEMSPAN_PASS(check_slice(space, options.slices[space]));
    auto part = space_bytes(options, space);
    if (!part.is_ok()) return part.status();
    bytes += *part;
  }
  if (bytes == 0) bytes = kHugePage;  // a pool without memory has an address all the same
  auto range = AddressRange::claim(member, options.name, bytes, layout_of(options), deadline);
  if (!range.is_ok()) return range.status();
  auto attendance = Attendance::create(options.ranks);
  if (!attendance.is_ok()) return attendance.status();
  std::unique_ptr<Pool> pool(new Pool(std::move(member), std::move(options),
                                      std::move(range).value(), std::move(attendance).value()));
  for (const SpaceKind kind : kKinds)
    MEMSPAN_TRY(pool->give(kind), fmt::format("giving {} memory", kSpaceNames[index_of(kind)]));
  return pool;
}

// New memory is taken now, so that a shortage is an error here.
Status Pool::give(SpaceKind kind) {
  const std::uint64_t bytes = slice(kind).bytes;
  if (bytes == 0) return Status::ok();
  const bool is_numa = kind == SpaceKind::kHost && options_.numa.has_value();
  auto pages = Result<Pages>(Status(Code::kUnavailable, "not tried"));
  bool is_new = true;
  if (kind == SpaceKind::kHost && options_.host_memory.is_valid()) {
    is_new = false;
    Fd descriptor = duplicate(options_.host_memory.get());
    if (!descriptor.is_valid()) return Status::from_errno("using the given descriptor");
    pages = Pages::adopt_unsealed(std::move(descriptor), bytes);
  } else if (bytes >= kHugePage && !is_numa) {
    pages = Pages::create_huge(bytes, "memspan-pool");
    is_new = !pages.is_ok();
  }
  if (is_new) pages = Pages::create(bytes, "memspan-pool");
  if (!pages.is_ok()) return pages.status();
  MEMSPAN_PASS(space(kind).map(options_.rank, *pages, bytes));
  if (is_numa)
    MEMSPAN_PASS(prefer_node(space(kind).begin_of(options_.rank), pages->bytes(),
                             *options_.numa >= 0 ? *options_.numa : current_node()));
  if (is_new) MEMSPAN_PASS(commit_within_budget(*pages, "the pool"));
  own_[index_of(kind)] = std::move(pages).value();
  return Status::ok();
}

Pool::~Pool() {
  static_cast<void>(leave(Deadline::after(kEndPatience)));
}

// ---- joining and leaving

Status Pool::join(Deadline deadline) {
  MutexLock joining(joining_);
  {
    MutexLock lock(mutex_);
    if (is_joined_) return Status::ok();
  }
  auto watch = member_->store().watch(
      members_prefix(), [this](const StoreChange& change) { take_news(change); }, deadline);
  if (!watch.is_ok()) return watch.status().annotate("joining the pool");
  watch_ = *watch;
  {
    MutexLock lock(mutex_);
    is_joined_ = true;
  }
  Status status = publish(deadline);
  if (status.is_ok()) {
    auto members = member_->store().list(members_prefix(), deadline);
    status = members.status();
    if (members.is_ok())
      for (const auto& [key, record] : *members)
        take_news({.event = StoreEvent::kSet, .key = key, .value = record});
  }
  if (!status.is_ok()) {
    static_cast<void>(part(Deadline::after(kEndPatience)));
    return status.annotate("joining the pool");
  }
  const Deadline patience = deadline.within(kPatience);
  {
    MutexLock lock(mutex_);
    while (is_asking() && wait_interruptibly(changed_, mutex_, patience)) {
    }
  }
  await_marks(true, patience);
  return Status::ok();
}

// Until everybody who is mapped here has this process's memory mapped, or nobody has.
void Pool::await_marks(bool are_set, const Deadline& deadline) {
  while (!deadline.has_passed() && !is_interrupted()) {
    const std::uint32_t changes = attendance_.changes();
    if (are_marks(are_set)) return;
    attendance_.await_change(changes, until_next_look(deadline));
  }
}

bool Pool::are_marks(bool are_set) {
  MutexLock lock(mutex_);
  for (std::uint32_t rank = 0; rank < options_.ranks; ++rank)
    if (peers_[rank].stage == Peer::Stage::kMapped && attendance_.is_marked(rank) != are_set)
      return false;
  return true;
}

// From now on the others find this process.
Status Pool::publish(Deadline deadline) {
  Record record{.generation = (member_->store().session() << 24) + ++joins_,
                .host = member_->host(),
                .ticket = member_->door().ticket(),
                .process = static_cast<std::uint64_t>(::getpid()),
                .has_own_host_memory = !options_.host_memory.is_valid(),
                .tag = options_.tags.tag};
  std::vector<Fd> descriptors(1);
  MEMSPAN_TRY_ASSIGN(descriptors[0], attendance_.duplicate(), "offering memory");
  for (std::size_t space = 0; space < kSpaces; ++space) {
    record.bytes[space] = options_.slices[space].bytes;
    if (!own_[space]) continue;
    MEMSPAN_TRY_ASSIGN(Fd descriptor, own_[space]->duplicate(), "offering memory");
    descriptors.push_back(std::move(descriptor));
  }
  MEMSPAN_PASS(member_->door().offer(offer_of(options_.rank), std::move(descriptors)));
  const std::string text = record.encode();
  const std::string key = members_prefix() + std::to_string(options_.rank);
  auto now = member_->store().compare_and_swap(key, {}, text, deadline, StoreOwner::kSession);
  if (!now.is_ok()) return now.status();
  if (*now == text) {
    is_published_ = true;
    return Status::ok();
  }
  const auto other = Record::decode(*now);
  if (other && other->ticket == record.ticket) {
    // This process's own, of a call that the store answered too late.
    now = member_->store().compare_and_swap(key, *now, text, deadline, StoreOwner::kSession);
    if (!now.is_ok()) return now.status();
    is_published_ = *now == text;
    if (is_published_) return Status::ok();
  }
  return {Code::kUnavailable, fmt::format("rank {} is in the pool already: process {}",
                                          options_.rank, other ? other->process : 0)};
}

Status Pool::leave(Deadline deadline) {
  MutexLock joining(joining_);
  {
    MutexLock lock(mutex_);
    if (!is_joined_)
      return {Code::kUnavailable, "this process has not joined the pool, or left it"};
  }
  return part(deadline);
}

// Everything of this process is over when it returns, whatever the store said.
Status Pool::part(Deadline deadline) {
  Status status;
  if (is_published_)
    status = member_->store()
                 .remove(members_prefix() + std::to_string(options_.rank), deadline)
                 .status();
  is_published_ = false;
  member_->door().withdraw(offer_of(options_.rank));
  if (status.is_ok()) await_marks(false, deadline.within(kPatience));
  static_cast<void>(member_->store().unwatch(watch_, deadline));
  {
    MutexLock lock(mutex_);
    is_joined_ = false;
  }
  for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) vanish(rank);
  return status;
}

// ---- news of the others

void Pool::take_news(const StoreChange& change) {
  const std::string_view name = std::string_view(change.key).substr(members_prefix().size());
  std::uint32_t rank = options_.ranks;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  if (error != std::errc() || end != name.data() + name.size() || rank >= options_.ranks ||
      rank == options_.rank)
    return;
  if (change.event == StoreEvent::kSet)
    appear(rank, change.value);
  else
    vanish(rank);
}

void Pool::appear(std::uint32_t rank, const std::string& text) {
  const auto record = Record::decode(text);
  if (!record) return;
  {
    MutexLock lock(mutex_);
    if (peers_[rank].generation == record->generation) return;
  }
  vanish(rank);  // an earlier one, whose end we have not heard of yet
  MutexLock lock(mutex_);
  Peer& peer = peers_[rank];
  // The news and the list of a join may bring the same record at the same time.
  if (!is_joined_ || peer.stage != Peer::Stage::kAbsent) return;
  peer.generation = record->generation;
  peer.bytes = record->bytes;
  peer.tag = record->tag;
  ++peer.news;
  if (record->tag != options_.tags.tag) has_rules_.store(true, std::memory_order_release);
  peer.stage = Peer::Stage::kAsked;
  if (record->host == member_->host()) {
    ask(rank, *record);
  } else {
    peer.stage = Peer::Stage::kFailed;
    peer.why = {Code::kNotSupported, fmt::format("rank {} is on another host, which this version "
                                                 "cannot copy to or from",
                                                 rank)};
  }
  changed_.notify_all();
}

void Pool::ask(std::uint32_t rank, const Record& record) {
  const std::uint64_t attempt = ++attempts_;
  peers_[rank].asked = attempt;
  peers_[rank].question = member_->door().ask(
      record.ticket, offer_of(rank), [this, rank, attempt, record](Result<DoorAnswer> answer) {
        answered(rank, attempt, record, std::move(answer));
      });
}

void Pool::answered(std::uint32_t rank, std::uint64_t attempt, const Record& record,
                    Result<DoorAnswer> answer) {
  MutexLock lock(mutex_);
  Peer& peer = peers_[rank];
  if (peer.asked != attempt) return;
  peer.question = 0;
  // A door that is closed, or offers it no more, is that of a member that ends or leaves.
  Status status = answer.is_ok() ? map_slices(rank, record, std::move(answer).value())
                                 : Status(Code::kPeerLost, answer.status().message());
  peer.stage = status.is_ok() ? Peer::Stage::kMapped : Peer::Stage::kFailed;
  if (!status.is_ok())
    for (const SpaceKind kind : kKinds) static_cast<void>(space(kind).unmap(rank));
  const bool is_gone = status.code() == Code::kPeerLost;
  peer.why = status.annotate(fmt::format("rank {}, process {}{}", rank, record.process,
                                         is_gone ? ", is not in the pool (any more)" : ""));
  changed_.notify_all();
}

Status Pool::map_slices(std::uint32_t rank, const Record& record, DoorAnswer answer) {
  auto descriptor = answer.descriptors.begin();
  if (descriptor == answer.descriptors.end())
    return {Code::kInternal, "it offers something else than it said"};
  auto attendance = Attendance::open(std::move(*descriptor++), options_.ranks);
  if (!attendance.is_ok()) return attendance.status();
  for (const SpaceKind kind : kKinds) {
    const std::uint64_t bytes = record.bytes[index_of(kind)];
    if (bytes == 0) continue;
    if (descriptor == answer.descriptors.end() || bytes > space(kind).stride())
      return {Code::kInternal, "it offers something else than it said"};
    const bool is_sealed = kind == SpaceKind::kDevice || record.has_own_host_memory;
    auto pages = is_sealed ? Pages::adopt(std::move(*descriptor))
                           : Pages::adopt_unsealed(std::move(*descriptor), bytes);
    if (!pages.is_ok()) return pages.status();
    if (pages->bytes() < bytes) return {Code::kInternal, "it offers less memory than it said"};
    MEMSPAN_PASS(space(kind).map(rank, *pages, bytes));
    ++descriptor;
  }
  attendance->mark(options_.rank, true);
  peers_[rank].attendance = std::move(attendance).value();
  return Status::ok();
}

// Waits for copies that hold its memory; the question is forgotten without the lock, which an
// answer may be waiting for.
void Pool::vanish(std::uint32_t rank) {
  if (rank == options_.rank) return;
  std::uint64_t question = 0;
  {
    MutexLock lock(mutex_);
    Peer& peer = peers_[rank];
    if (peer.stage == Peer::Stage::kAbsent) return;
    question = std::exchange(peer.question, 0);
    for (const SpaceKind kind : kKinds) static_cast<void>(space(kind).unmap(rank));
    if (peer.attendance) peer.attendance->mark(options_.rank, false);
    peer = {.news = peer.news + 1};
    changed_.notify_all();
    attendance_.count_change();
  }
  if (question != 0) member_->door().forget(question);
}

bool Pool::is_asking() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return peer.stage == Peer::Stage::kAsked; });
}

// ---- for copies

Result<std::uint64_t> Pool::await(std::uint32_t rank, SpaceKind kind, Deadline deadline) {
  if (rank == options_.rank) return slice(kind).bytes;
  MutexLock lock(mutex_);
  bool has_asked_store = false;
  while (true) {
    const Peer& peer = peers_[rank];
    if (!is_joined_)
      return Status(Code::kUnreachable,
                    fmt::format("rank {} is reached after this process has joined the pool", rank));
    if (peer.stage == Peer::Stage::kMapped) return peer.bytes[index_of(kind)];
    if (peer.stage == Peer::Stage::kFailed) return peer.why;
    if (peer.stage == Peer::Stage::kAbsent) {
      if (std::exchange(has_asked_store, true)) return gone(rank);
      MEMSPAN_PASS(await_news(rank, deadline));
    } else if (!wait_interruptibly(changed_, mutex_, deadline)) {
      return end_of_wait(fmt::format("rank {} did not hand over its memory in time", rank));
    }
  }
}

Status Pool::gone(std::uint32_t rank) {
  return {Code::kPeerLost,
          fmt::format("rank {} is not in the pool: it has not joined, left, or ended", rank)};
}

// The store may know of a member that this process has not been told of. What it says comes after
// the news on the same connection, so that they are on their way when there is a record.
Status Pool::await_news(std::uint32_t rank, const Deadline& deadline) {
  const std::uint64_t news = peers_[rank].news;
  mutex_.unlock();
  auto record = member_->store().get_now(members_prefix() + std::to_string(rank), deadline);
  mutex_.lock();
  if (record.code() == Code::kNotFound) return gone(rank);
  if (!record.is_ok()) return record.status();
  while (peers_[rank].news == news && is_joined_)
    if (!wait_interruptibly(changed_, mutex_, deadline))
      return end_of_wait(fmt::format("no news of rank {} came in time", rank));
  return Status::ok();
}

Status Pool::check_way(std::uint32_t from, std::uint32_t to) {
  MutexLock lock(mutex_);
  const auto tag_of = [&](std::uint32_t rank) MEMSPAN_REQUIRES(mutex_) {
    return rank == options_.rank ? options_.tags.tag : peers_[rank].tag;
  };
  const std::string one = tag_of(from), other = tag_of(to);
  if (options_.tags.allows(one, other)) return Status::ok();
  return {Code::kUnreachable,
          fmt::format("no operation leads from rank {} (tag \"{}\") to rank {} (tag \"{}\"): "
                      "tagOpInfo has none for these tags",
                      from, one, to, other)};
}

}  // namespace memspan
