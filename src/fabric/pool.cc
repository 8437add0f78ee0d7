// SPDX-License-Identifier: Apache-2.0
#include "fabric/pool.h"

#include "core/environment.h"
#include "core/interrupt.h"
#include "core/status.h"
#include "device/host/guarded_copy.h"
#include "device/numa.h"
#include "memory/budget.h"
#include "net/metrics_server.h"
#include "store/recipes/rank_recipe.h"

namespace memspan::inline fabric {
namespace {

// How long a join or a leave waits for a member that does nothing.
constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kPoolEndPatience = std::chrono::seconds(5);

}  // namespace

Pool::Pool(std::shared_ptr<Member> member, PoolOptions options, std::unique_ptr<AddressRange> range,
           MapperTable mappers)
    : member_(std::move(member)),
      options_(std::move(options)),
      other_device_(options_.device->is_host() ? nullptr : options_.device),
      range_(std::move(range)),
      host_(range_->host_part(), options_.contributions[0].most, options_.ranks),
      device_(range_->device_part(), options_.contributions[1].most, options_.ranks),
      mappers_(std::move(mappers)),
      peers_(options_.ranks) {}

Result<std::unique_ptr<Pool>> Pool::create(std::shared_ptr<Member> member, PoolOptions options,
                                           Deadline deadline) {
  catch_copy_faults();
  auto& [host, on_device] = options.contributions;
  for (ContributionRequest* const request : {&host, &on_device}) {
    MEMSPAN_CHECK(request->bytes <= request->most);
    if (request->most > address_windows().pool_bytes() / options.ranks)
      return Status(
          Code::kInvalidArgument,
          fmt::format("{} ranks of up to {} of {} memory need more addresses than pools may have, "
                      "{}",
                      options.ranks, format_size(request->most),
                      request == &host ? "host" : "device",
                      format_size(address_windows().pool_bytes())));
    request->most = align_up(request->most, kHugePage);
  }
  const std::uint64_t given = host.bytes + on_device.bytes;
  MEMSPAN_PASS_ASSIGN(
      auto range,
      AddressRange::claim(
          member, options.name,
          {.host_bytes = host.most * options.ranks,
           .device = options.device,
           .device_bytes = on_device.most * options.ranks},
          fmt::format("{} ranks with up to {} bytes of host and {} of device memory ({}) each",
                      options.ranks, host.most, on_device.most, options.device->name()),
          deadline));
  MEMSPAN_PASS_ASSIGN(auto mappers, MapperTable::create(options.ranks));
  std::unique_ptr<Pool> pool(
      new Pool(std::move(member), std::move(options), std::move(range), std::move(mappers)));
  MEMSPAN_TRY_ASSIGN(
      pool->listed_,
      ListedMember::list(
          MemberKind::kPool,
          fmt::format("{}@{}", pool->options_.name, pool->member_->store_endpoint().to_string()),
          static_cast<int>(pool->rank()), static_cast<int>(pool->ranks()), serve_metrics),
      "listing the pool: naming it");
  pool->listed_.set_memory(given, given);
  for (const RangeKind kind : kRangeKinds)
    MEMSPAN_TRY(pool->give(kind),
                kind == RangeKind::kHost ? "giving host memory" : "giving device memory");
  return pool;
}

Status Pool::give_pages(RangeKind kind, std::uint64_t bytes) {
  const bool is_numa = kind == RangeKind::kHost && options_.numa.has_value();
  const bool is_given = kind == RangeKind::kHost && options_.host_memory.is_valid();
  Fd descriptor = is_given ? duplicate(options_.host_memory.get()) : Fd();
  if (is_given && !descriptor.is_valid()) return Status::from_errno("using the given descriptor");
  MEMSPAN_PASS_ASSIGN(auto pages, is_given ? Pages::adopt_unsealed(std::move(descriptor), bytes)
                                           : make_pages(bytes, !is_numa, "memspan-pool"));
  auto memory = std::make_unique<HostMemory>(std::move(pages));
  MEMSPAN_PASS(windows(kind).map(options_.rank, *memory, bytes, Admission::of_owner()));
  if (is_numa) {
    placement_ = prefer_node(windows(kind).begin_of(options_.rank), memory->bytes(),
                             *options_.numa >= 0 ? *options_.numa : current_node());
    if (placement_.code() != Code::kNotSupported) MEMSPAN_PASS(placement_);
  }
  if (!is_given && !memory->pages().is_huge())
    MEMSPAN_PASS(commit_within_budget(
        {memory->pages(), 0, windows(kind).begin_of(options_.rank), memory->bytes()}, "the pool"));
  own_[index_of(kind)] = std::move(memory);
  return Status::ok();
}

Result<std::unique_ptr<DeviceMemory>> Pool::adopt(RangeKind kind, Fd descriptor,
                                                  const Record& record) {
  if (kind == RangeKind::kDevice) return device().adopt(std::move(descriptor));
  if (record.has_own_host_memory) return host_device().adopt(std::move(descriptor));
  MEMSPAN_PASS_ASSIGN(auto pages,
                      Pages::adopt_unsealed(std::move(descriptor), record.bytes[index_of(kind)]));
  return std::unique_ptr<DeviceMemory>(new HostMemory(std::move(pages)));
}

// ---- joining and leaving

Status Pool::join(Deadline deadline) {
  MutexLock joining(joining_);
  {
    MutexLock lock(mutex_);
    if (join_ != 0) return Status::ok();
  }
  MEMSPAN_TRY_ASSIGN(
      watch_,
      member_->store().watch(
          members_prefix(), [this](const StoreChange& change) { on_membership_event(change); },
          deadline),
      "joining the pool");
  const std::uint64_t join = (member_->store().lease() << 24) + ++joins_;
  {
    MutexLock lock(mutex_);
    join_ = join;
  }
  Status status = publish(join, deadline);
  if (status.is_ok()) {
    auto members = member_->store().list(members_prefix(), deadline);
    status = members.status();
    if (members.is_ok())
      for (const auto& [key, record] : *members)
        on_membership_event({.event = StoreEvent::kSet, .key = key, .value = record});
  }
  if (!status.is_ok()) {
    static_cast<void>(detach(Deadline::after(kPoolEndPatience)));
    return status.annotate("joining the pool");
  }
  const Deadline patience = deadline.within(kPatience);
  {
    MutexLock lock(mutex_);
    while (std::any_of(peers_.begin(), peers_.end(), std::mem_fn(&Peer::is_fetching)) &&
           wait_interruptibly(changed_, mutex_, patience)) {
    }
  }
  await_mapped_flags(true, patience);
  return Status::ok();
}

// From now on the others find this process.
Status Pool::publish(std::uint64_t join, Deadline deadline) {
  Record record{.generation = join,
                .who = member_->identity(),
                .broker_address = member_->broker().address(),
                .has_own_host_memory = !options_.host_memory.is_valid(),
                .tag = options_.tags.tag};
  MEMSPAN_PASS(member_->be_reachable(deadline));
  {
    MutexLock lock(exposing_);
    generation_ = record.generation;
  }
  member_->services().add(published_name(options_.rank),
                          [this](std::string_view request) { return describe_windows(request); });
  std::vector<Fd> descriptors(1);
  MEMSPAN_TRY_ASSIGN(descriptors[0], mappers_.duplicate(), "offering memory");
  for (std::size_t range = 0; range < kRanges; ++range) {
    record.bytes[range] = options_.contributions[range].bytes;
    if (!own_[range]) continue;
    MEMSPAN_TRY_ASSIGN(Fd descriptor, own_[range]->duplicate(), "offering memory");
    descriptors.push_back(std::move(descriptor));
  }
  MEMSPAN_PASS(member_->broker().publish(published_name(options_.rank), std::move(descriptors)));
  const std::string text = encode_record(record);
  const std::string key = member_key(options_.rank);
  std::string before;  // or this process's own record, if the store answered a call too late
  while (true) {
    MEMSPAN_PASS_ASSIGN(std::string now, member_->store().compare_and_swap(
                                             key, before, text, deadline, KeyLife::kLease));
    is_published_ = now == text;
    if (is_published_) return Status::ok();
    const auto other = decode_record<Record>(now, "member");
    if (!before.empty() || !other.is_ok() || other->broker_address != record.broker_address)
      return {Code::kUnavailable,
              fmt::format("rank {} is in the pool already: process {}{}", options_.rank,
                          other.is_ok() ? other->who.process : 0, kRankTaken)};
    before = std::move(now);
  }
}

// Everything of this process is over when it returns, whatever the store said.
Status Pool::detach(Deadline deadline) {
  Status status;
  if (is_published_) status = member_->store().remove(member_key(options_.rank), deadline).status();
  is_published_ = false;
  member_->broker().retract(published_name(options_.rank));
  member_->services().remove(published_name(options_.rank));
  {
    MutexLock lock(exposing_);
    generation_ = 0;
    for (auto& region : exposed_) region.reset();
  }
  if (status.is_ok()) await_mapped_flags(false, deadline.within(kPatience));
  static_cast<void>(member_->store().unwatch(watch_, deadline));
  {
    MutexLock lock(mutex_);
    join_ = 0;
    changed_.notify_all();
  }
  for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
    on_peer_left(rank);
    mappers_.admit(rank, 0);
  }
  return status;
}

}  // namespace memspan::inline fabric
