// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/transfer_endpoint.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "core/environment.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/random.h"
#include "device/choice.h"
#include "device/host/copy.h"
#include "device/host/guarded_copy.h"
#include "fabric/transfer/endpoint_name.h"
#include "fabric/transfer/transfer_counters.h"

namespace memspan::transfer {
namespace {

constexpr Duration kTellAfter = std::chrono::seconds(3);

constexpr const char* kDestroyed = "the endpoint has been destroyed";
// As long as MemFabric's registering sleeps, on which programs rely as a barrier.
Result<Duration> registration_patience() {
  constexpr std::int64_t kUsual = 8;
  constexpr std::int64_t kMost = 86400;
  MEMSPAN_PASS_ASSIGN(auto seconds, environment_integer("MEMSPAN_TRANS_WAIT", 0, kMost));
  return Duration(std::chrono::seconds(seconds.value_or(kUsual)));
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::open(std::shared_ptr<Member> member,
                                                 std::string_view name, Role role,
                                                 Deadline deadline) {
  MEMSPAN_PASS_ASSIGN(auto normal, normal_name(name));
  catch_copy_faults();
  EndpointRecord record{.name = normal,
                        .generation = random_hex(8),
                        .role = role,
                        .broker_address = member->broker().address(),
                        .who = member->identity()};
  MEMSPAN_TRY(chosen_device().status(), "making an endpoint");
  MEMSPAN_PASS(check_copy_setting());
  MEMSPAN_PASS_ASSIGN(auto patience, registration_patience());
  MEMSPAN_PASS_ASSIGN(auto table, RegistrationTable::create());
  MEMSPAN_PASS_ASSIGN(auto notifications, NotificationQueue::create());
  MEMSPAN_PASS_ASSIGN(auto worker, Worker::create());
  // If the Yama module restricts ptrace, peers may still reach this process's memory.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  std::unique_ptr<Endpoint> made(new Endpoint(std::move(member), std::move(record),
                                              std::move(table), std::move(notifications),
                                              std::move(worker), patience));
  MEMSPAN_TRY_ASSIGN(made->listed_, ListedMember::list(MemberKind::kEndpoint, normal, 0, 1),
                     "making an endpoint");
  std::vector<Fd> descriptors;
  {
    MutexLock lock(made->mutex_);
    MEMSPAN_TRY_ASSIGN(Fd pages, made->table_.pages().duplicate(), "making an endpoint");
    descriptors.push_back(std::move(pages));
  }
  MEMSPAN_TRY_ASSIGN(Fd notifications_end, made->notifications_.sending_end(),
                     "making an endpoint");
  descriptors.push_back(std::move(notifications_end));
  MEMSPAN_PASS(
      made->member_->broker().publish(made->record_.published_name(), std::move(descriptors)));
  made->member_->services().add(
      made->record_.published_name(),
      [endpoint = made.get()](std::string_view request) { return endpoint->answer(request); });
  MEMSPAN_PASS(made->member_->be_reachable(deadline));
  MEMSPAN_PASS_ASSIGN(made->name_, NameClaim::take(made->member_, made->record_, deadline));
  return made;
}

Endpoint::Endpoint(std::shared_ptr<Member> member, EndpointRecord record, RegistrationTable table,
                   NotificationQueue notifications, std::shared_ptr<Worker> worker,
                   Duration patience)
    : member_(std::move(member)),
      record_(std::move(record)),
      notifications_(std::move(notifications)),
      adopted_(*member_, record_, table_for_adopted()),
      table_(std::move(table)),
      counters_(table_.pages().counters()),
      registrations_(table_),
      of_device_(other_device(), *member_, record_, registrations_),
      exposed_(table_.pages()),
      worker_(std::move(worker)),
      peers_(std::make_unique<Peers>(
          member_, record_.role, patience,
          [worker = worker_](const std::string& peer) { worker->note_peer_down(peer); })) {}

Endpoint::~Endpoint() {
  member_->services().remove(record_.published_name());
  {
    MutexLock lock(mutex_);
    table_.close();
    exposed_.retract_all();
    for (const auto& [address, allocation] : allocations_)
      member_->broker().retract(record_.allocation_name(allocation.number));
  }
  worker_->end();
  peers_.reset();
  {
    MutexLock registering(registering_);
    adopted_.remove_all();
  }
  member_->broker().retract(record_.published_name());
  if (name_ == nullptr) return;
  KeyValueStore& store = member_->store();
  const bool is_told = member_->has_remote_access() && member_->store_state().is_ok();
  const std::string key = destroyed_key(record_);
  if (is_told)
    member_->tell_end(
        [&](const Deadline& deadline) { return store.set(key, "", deadline, KeyLife::kLease); });
  name_.reset();
  if (is_told)
    member_->tell_end(
        [&](const Deadline& deadline) { return store.remove(key, deadline).status(); });
}

Status Endpoint::add(std::uint64_t base, std::uint64_t bytes) {
  peers_->note_registration();
  MutexLock registering(registering_);
  MEMSPAN_PASS_ASSIGN(auto counted, adopted_.count(base, bytes));
  if (counted) return Status::ok();
  MutexLock lock(mutex_);
  return of_device_.concerns(base) ? of_device_.add(base, bytes) : registrations_.add(base, bytes);
}

Status Endpoint::add_joined(std::span<const Range> ranges) {
  peers_->note_registration();
  MutexLock registering(registering_);
  for (const Range& range : ranges) MEMSPAN_PASS(adopted_.check_apart(range.base, range.bytes));
  MutexLock lock(mutex_);
  const auto is_of_device = [this](const Range& range) MEMSPAN_REQUIRES(mutex_) {
    return of_device_.concerns(range.base);
  };
  const auto count = std::count_if(ranges.begin(), ranges.end(), is_of_device);
  if (count == 0) return registrations_.add_joined(ranges);
  if (static_cast<std::size_t>(count) != ranges.size())
    return {Code::kInvalidArgument, "memory of the host and of a device in one registration"};
  return of_device_.add_all(ranges);
}

Status Endpoint::add_adopted(std::uint64_t base, std::uint64_t bytes) {
  MEMSPAN_PASS(check_range(base, bytes));
  peers_->note_registration();
  MutexLock registering(registering_);
  return adopted_.add(base, bytes);
}

AdoptedRegistrations::Table Endpoint::table_for_adopted() {
  return {.check =
              [this](const Range& range) {
                MutexLock lock(mutex_);
                if (of_device_.concerns(range.base))
                  return Status(
                      Code::kNotSupported,
                      "memory of a device has no pages to adopt, and needs none: register "
                      "it as it is");
                return registrations_.check_apart(range.base, range.bytes);
              },
          .add =
              [this](const Range& range) {
                MutexLock lock(mutex_);
                return registrations_.add_allocation(range);
              },
          .remove =
              [this](const Range& range, std::uint32_t slot) {
                MutexLock lock(mutex_);
                registrations_.remove_allocation(slot);
                exposed_.retract_removed(range.base);
              }};
}

void Endpoint::leave_adopted_pages() {
  MutexLock registering(registering_);
  adopted_.leave_pages();
}

Status Endpoint::remove(std::uint64_t base) {
  MutexLock registering(registering_);
  if (Status status = adopted_.remove(base); status.code() != Code::kNotFound) return status;
  MutexLock lock(mutex_);
  Status status = of_device_.remove(base) ? Status::ok() : registrations_.remove(base);
  exposed_.retract_removed(base);
  return status;
}

Result<void*> Endpoint::allocate(std::size_t bytes) {
  MEMSPAN_PASS_ASSIGN(auto memory, RegisteredAllocation::allocate(bytes));
  std::byte* const base = memory.base();
  MutexLock lock(mutex_);
  const std::uint32_t number = ++last_allocation_;
  MEMSPAN_PASS(publish_allocation(memory, number));
  auto slot = registrations_.add_allocation(
      Range{.base = reinterpret_cast<std::uint64_t>(base), .bytes = bytes, .allocation = number});
  if (!slot.is_ok()) {
    member_->broker().retract(record_.allocation_name(number));
    return slot.status();
  }
  peers_->note_registration();
  allocations_.emplace(base, Allocation{std::move(memory), number, *slot});
  return static_cast<void*>(base);
}

Result<void*> Endpoint::allocate_of_device(std::size_t bytes) {
  Device* const device = other_device();
  if (device == nullptr) return allocate(bytes);
  if (bytes == 0) return Status(Code::kInvalidArgument, "invalid capacity, which is 0");
  MEMSPAN_TRY_ASSIGN(std::shared_ptr<std::byte> memory,
                     device->allocate_mapped(bytes, "memspan-trans"), "making device memory");
  std::byte* const base = memory.get();
  MutexLock lock(mutex_);
  MEMSPAN_PASS(of_device_.add_allocation(reinterpret_cast<std::uint64_t>(base), bytes));
  peers_->note_registration();
  device_memory_.emplace(base, std::move(memory));
  return static_cast<void*>(base);
}

Status Endpoint::publish_allocation(RegisteredAllocation& memory, std::uint32_t number) {
  std::vector<Fd> descriptors;
  descriptors.push_back(memory.take_descriptor());
  return member_->broker().publish(record_.allocation_name(number), std::move(descriptors));
}

Result<std::string> Endpoint::answer(std::string_view request) {
  MEMSPAN_PASS_ASSIGN(auto asked, decode_endpoint_request(request));
  return asked.notify ? answer_notify(*asked.notify) : answer_resolve(asked.resolve);
}

Result<std::string> Endpoint::answer_resolve(const std::vector<Piece>& pieces) {
  MEMSPAN_PASS_ASSIGN(auto access, member_->remote_access());
  ResolveAnswer answer;
  std::set<const ExposedRegion*> told;
  MutexLock lock(mutex_);
  for (const Piece& piece : pieces) {
    auto extent = exposed_.find(*access, piece.remote, piece.bytes);
    if (extent.code() == Code::kNotFound) {
      answer.refusal = extent.status().message();
      break;
    }
    if (!extent.is_ok()) return extent.status();
    if (told.insert(extent->region).second)
      answer.extents.push_back({extent->base, extent->region->describe()});
  }
  return encode(answer);
}

// kUnavailable: the queue is full.
Result<std::string> Endpoint::answer_notify(const Notify& notify) {
  const CompletionAction& action = notify.action;
  if (action.counter) MEMSPAN_PASS(check_counter(*action.counter));
  if (action.message) {
    const Status status = notifications_.push({notify.sender, *action.message});
    if (status.code() == Code::kTimeout) return Status(Code::kUnavailable, status.message());
    if (!status.is_ok()) return status;
  }
  if (action.counter) add_to_counter(counters_, *action.counter, action.value);
  return std::string();
}

Status Endpoint::reach(std::string_view peer) {
  const EndsWith ends(is_ending_, kDestroyed);
  const auto found = peers_->find(peer);
  return found.is_ok() ? (*found)->ask() : found.status();
}

bool Endpoint::release_of_device(const void* address) {
  std::map<const void*, std::shared_ptr<std::byte>>::node_type memory;  // ends without the lock
  MutexLock lock(mutex_);
  memory = device_memory_.extract(address);
  if (memory.empty()) return false;
  const auto base = reinterpret_cast<std::uint64_t>(address);
  of_device_.remove_allocation(base);
  exposed_.retract_removed(base);
  return true;
}

Status Endpoint::release(const void* address) {
  if (release_of_device(address)) return Status::ok();
  std::map<const void*, Allocation>::node_type allocation;  // ends without the lock
  MutexLock lock(mutex_);
  allocation = allocations_.extract(address);
  if (allocation.empty())
    return {Code::kInvalidArgument,
            fmt::format("invalid address, which is {}: no memory of this endpoint begins there",
                        address)};
  registrations_.remove_allocation(allocation.mapped().slot);
  exposed_.retract_removed(reinterpret_cast<std::uint64_t>(address));
  member_->broker().retract(record_.allocation_name(allocation.mapped().number));
  return Status::ok();
}

Status Endpoint::submit(Direction direction, std::string_view peer, const Pieces& pieces,
                        const DeviceStream& stream) {
  const EndsWith ends_early(is_ending_, kDestroyed);
  MEMSPAN_PASS_ASSIGN(auto found, peers_->find(peer));
  return StreamTransfer(*found, direction, stream).submit(pieces);
}

Status Endpoint::transfer(Direction direction, std::string_view peer, const Pieces& pieces,
                          Ends ends) {
  const EndsWith ends_early(is_ending_, kDestroyed);
  auto found = peers_->find(peer);
  if (!found.is_ok()) return found.status();
  CopyEngine engine(**found, direction, pieces, Cursor{},
                    ends == Ends::kAny ? (*found)->device() : nullptr);
  Status status = engine.move_all();
  if (!status.is_ok() && is_ending_.load(std::memory_order_acquire))
    return {Code::kUnavailable, kDestroyed};
  if (!engine.is_refused()) [[likely]]
    return status;
  return wait_for_registration(**found, engine, std::move(status));
}

Status Endpoint::transfer(Direction direction, std::string_view peer, const Piece& piece) {
  if (peers_->move_at_once(peer, direction, piece)) [[likely]]
    return Status::ok();
  return transfer(direction, peer, PieceList({piece}));
}

// The peer does not report registrations, so this polls.
Status Endpoint::wait_for_registration(Peer& peer, CopyEngine& engine, Status refusal) {
  constexpr Duration kNap = std::chrono::milliseconds(1);
  const Duration patience = peers_->patience_with(peer);
  if (patience == Duration::zero()) return refusal;
  const Deadline deadline = Deadline::after(patience);
  Deadline tell = Deadline::after(kTellAfter);
  while (engine.is_refused() && !deadline.has_passed()) {
    if (is_ending_.load(std::memory_order_acquire)) return {Code::kUnavailable, kDestroyed};
    if (is_interrupted()) return interruption();
    if (!tell.is_never() && tell.has_passed()) {
      log_line(
          LogLevel::kWarn,
          fmt::format("waiting {:.0f} s more for endpoint {}, which is running, to register "
                      "memory (MEMSPAN_TRANS_WAIT): {}",
                      to_seconds(deadline.remaining()), peer.record().name, refusal.message()));
      tell = Deadline::never();
    }
    std::this_thread::sleep_for(kNap);
    refusal = engine.move_all();
  }
  if (engine.is_refused()) peers_->note_waited_in_vain(peer);
  return refusal;
}

Status Endpoint::wait_for_counter(std::uint32_t counter, std::uint64_t value,
                                  Deadline deadline) const {
  return transfer::wait_for_counter(counters_, counter, value, is_ending_, deadline);
}

void Endpoint::end_waits() {
  is_ending_.store(true, std::memory_order_seq_cst);
  ring_counters(counters_);
  notifications_.end();
}

std::shared_ptr<Request> Endpoint::prepare(Direction direction, std::string peer,
                                           std::unique_ptr<const Pieces> pieces) const {
  return std::make_shared<Request>(direction, record_.name, std::move(peer), std::move(pieces));
}

}  // namespace memspan::transfer
