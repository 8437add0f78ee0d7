// SPDX-License-Identifier: Apache-2.0
// The memory that an endpoint lets its peers reach, as its owner gave it. All of it is in the
// registration table. There are two kinds:
//
//   ranges        ordinary memory of the program
//   allocations   memory that peers of this host map: that of the endpoint, that of a device, and
//                 the program's whose pages were made shared in place (memory/adopted_memory.h).
//                 Each has a number in the table, and its descriptors are published under it
//
// Only a device's driver can share its memory, whatever allocated it:
//
//   Device::share_pointer() ─► a memfd with the text, descriptors ─► Device::open_pointer()
//
// The owner must not free adopted memory before it takes the registration back. If it does, the
// next registration that overlaps it notices that.
#pragma once

#include <set>
#include <span>
#include <tuple>

#include "device/choice.h"
#include "fabric/transfer/endpoint_record.h"
#include "fabric/transfer/registration_view.h"
#include "fabric/transfer/remote_service.h"
#include "memory/adopted_memory.h"
#include "node/descriptor_broker.h"

namespace memspan::transfer {

// The registered memory that members on other hosts have asked for, each extent a region. The
// owner's side. The table outlives it. One thread at a time.
class ExposedRegistrations {
 public:
  explicit ExposedRegistrations(const RegistrationPages& table) : view_(table) {}

  // The regions that contain the pieces, up to the first piece that is not registered.
  Result<ResolveAnswer> resolve(RemoteAccess& access, std::span<const Piece> pieces) {
    ResolveAnswer answer;
    std::set<const ExposedRegion*> told;
    view_.refresh();
    for (const Piece& piece : pieces) {
      const auto extent = view_.extent_of(piece.remote, piece.bytes);
      if (!extent) {
        answer.refusal = view_.describe(piece.remote);
        break;
      }
      auto& region = by_range_[{extent->is_joined, extent->base, extent->end}];
      if (region == nullptr) {
        auto* const base = reinterpret_cast<void*>(extent->base);  // NOLINT: an address
        Device* const device = other_device();
        MEMSPAN_PASS_ASSIGN(
            region,
            access.expose(base, extent->end - extent->base,
                          device != nullptr && device->owns(base) ? *device : host_device()));
      }
      if (told.insert(region.get()).second)
        answer.extents.emplace_back(extent->base, region->describe().encode());
    }
    return answer;
  }
  // Call it after the registration at `base` was removed from the table. Retracts what is not
  // registered any more.
  void retract_removed(std::uint64_t base) {
    // Those of one range that begins there, and all joined ones.
    auto at = by_range_.lower_bound({false, base, 0});
    const auto joined = by_range_.lower_bound({true, 0, 0});
    if (at != by_range_.end() && std::get<1>(at->first) != base) at = joined;
    if (at == by_range_.end()) return;
    view_.refresh();  // by far the longest step
    while (at != by_range_.end()) {
      const auto [is_joined, begin, end] = at->first;
      if (!is_joined && begin != base)
        at = joined;
      else if (view_.extent_of(begin, end - begin))
        ++at;
      else
        at = by_range_.erase(at);
    }
  }
  void retract_all() { by_range_.clear(); }

 private:
  RegistrationView view_;
  // By beginning and end; those of several ranges that are joined come last. Null: it could not be
  // exposed.
  std::map<std::tuple<bool, std::uint64_t, std::uint64_t>, std::unique_ptr<ExposedRegion>>
      by_range_;
};

// Bits of an allocation's number.
inline constexpr std::uint32_t kAdopted = std::uint32_t{1} << 30;
inline constexpr std::uint32_t kOfDevice = std::uint32_t{1} << 31;

// Opens a registration of device memory here. `device` null: this process has no device, and it is
// refused. `fetch` asks the owner's broker. Returns its failures, and kInternal for anything that
// no owner publishes.
using FetchPublished = std::function<Result<FetchedDescriptors>(const std::string& name)>;
Result<OpenedPointer> open_registration(Device* device, const std::string& name,
                                        const FetchPublished& fetch);

// Retracts publications by their names.
struct RetractNames {
  DescriptorBroker* broker = nullptr;
  void operator()(const std::vector<std::string>* names) const {
    for (const std::string& name : *names) broker->retract(name);
    delete names;
  }
};
// The names of what is published until it ends. The broker outlives it.
using Publication = std::unique_ptr<std::vector<std::string>, RetractNames>;
// Publishes descriptors under NAME, and those that are more than a publication holds under NAME/1,
// NAME/2 ... All or nothing.
Result<Publication> publish_in_parts(DescriptorBroker& broker, const std::string& name,
                                     std::vector<Fd> descriptors);

// Thread-safe.
class RegisteredMemory {
 public:
  // `broker` and `record` outlive it.
  RegisteredMemory(DescriptorBroker& broker, const EndpointRecord& record, RegistrationPages pages)
      : broker_(broker),
        record_(record),
        device_(other_device()),
        table_(std::move(pages)),
        pages_(table_.pages()),
        exposed_(pages_) {}

  const RegistrationPages& pages() const { return pages_; }
  // How often something was registered.
  const std::atomic<std::uint64_t>& changes() const { return changes_; }

  // The same range again is counted. kInvalidArgument: it overlaps adopted or device memory that is
  // registered; kNotSupported: the driver does not share this memory.
  Status add(std::uint64_t base, std::uint64_t bytes) MEMSPAN_EXCLUDES(mutex_) {
    changes_.fetch_add(1, std::memory_order_relaxed);
    MutexLock registering(registering_);
    MEMSPAN_PASS_ASSIGN(const bool is_counted, count_adopted(base, bytes));
    if (is_counted) return Status::ok();
    MutexLock lock(mutex_);
    return is_of_device(base) ? add_of_device(base, bytes) : table_.add(base, bytes);
  }
  // All or none. Those that touch are joined, except in memory of a device.
  Status add_joined(std::span<const Range> ranges) MEMSPAN_EXCLUDES(mutex_);
  // Fails as AdoptedMemory::adopt(), and with kInvalidArgument if it overlaps another registration.
  // Takes long; other calls use the table during it.
  Status add_adopted(std::uint64_t base, std::uint64_t bytes) MEMSPAN_EXCLUDES(mutex_);
  // Takes back the latest one that begins there. kNotFound: none begins there. Adopted memory gets
  // private pages again the last time; if that fails, its pages stay shared.
  Status remove(std::uint64_t base) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock registering(registering_);
    if (const auto found = adopted_.find(base); found != adopted_.end())
      return --found->second.count > 0 ? Status::ok() : take_back(found);
    MutexLock lock(mutex_);
    return remove_plain(base);
  }
  // No transfer uses adopted memory any more.
  void take_back_adopted() {
    MutexLock registering(registering_);
    while (!adopted_.empty()) static_cast<void>(take_back(adopted_.begin()));
  }
  // The process ends soon: the end of this object does not give adopted memory private pages again.
  void leave_adopted_pages() {
    MutexLock registering(registering_);
    for (auto& [base, allocation] : adopted_) allocation.adopted->leave();
  }

  // Registered memory on a page, which peers map. kDevice: of the device that this process has
  // chosen. If that is not the host, the size is in steps of its pages. After release(), running
  // transfers of this process keep the memory until they are over, and peers until they look at the
  // registrations again.
  enum class Place { kHost, kDevice };
  Result<void*> allocate(std::size_t bytes, Place place) MEMSPAN_EXCLUDES(mutex_);
  // kInvalidArgument when such memory does not begin there.
  Status release(const void* address) MEMSPAN_EXCLUDES(mutex_);

  // For members on other hosts: the regions that contain the pieces.
  Result<ResolveAnswer> resolve(RemoteAccess& access, std::span<const Piece> pieces)
      MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return exposed_.resolve(access, pieces);
  }
  // Peers find it ended from now on.
  void close() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    table_.close();
    exposed_.retract_all();
  }

 private:
  struct Allocation {
    Range range;
    std::uint32_t slot = 0;                  // of the registration table
    std::uint64_t count = 0;                 // how often the program has registered it
    std::shared_ptr<std::byte> memory = {};  // the endpoint's; null: the program has allocated it
    std::optional<AdoptedMemory> adopted = {};
    Publication published;  // ends first
  };
  using ByBase = std::map<std::uint64_t, Allocation>;
  static ByBase::iterator find_overlap(ByBase& in, std::uint64_t base, std::uint64_t bytes) {
    const auto next = in.lower_bound(base);
    if (next != in.begin())
      if (const auto before = std::prev(next); base - before->first < before->second.range.bytes)
        return before;
    return next != in.end() && next->first - base < bytes ? next : in.end();
  }
  // Ignores adopted ranges that the program has freed, and takes them back.
  Result<ByBase::iterator> find_adopted(std::uint64_t base, std::uint64_t bytes)
      MEMSPAN_REQUIRES(registering_) MEMSPAN_EXCLUDES(mutex_) {
    while (true) {
      const auto found = find_overlap(adopted_, base, bytes);
      if (found == adopted_.end()) return found;
      MEMSPAN_PASS_ASSIGN(const bool is_in_place, found->second.adopted->is_in_place());
      if (is_in_place) return found;
      // The program has other memory at this address now.
      MEMSPAN_TRY(take_back(found), "forgetting memory that was freed while it was registered");
    }
  }
  // True: exactly this range is adopted, and is counted once more. False: no adopted range overlaps
  // it. kInvalidArgument: another adopted range does.
  Result<bool> count_adopted(std::uint64_t base, std::uint64_t bytes) MEMSPAN_REQUIRES(registering_)
      MEMSPAN_EXCLUDES(mutex_);
  // Peers stop finding it in the table before the pages change.
  Status take_back(ByBase::iterator adopted) MEMSPAN_REQUIRES(registering_)
      MEMSPAN_EXCLUDES(mutex_) {
    auto node = adopted_.extract(adopted);
    {
      MutexLock lock(mutex_);
      withdraw(node.mapped());
    }
    node.mapped().published.reset();
    return node.mapped().adopted->give_back();
  }
  bool is_of_device(std::uint64_t base) const {
    return device_ != nullptr && device_->owns(reinterpret_cast<const void*>(base));
  }
  Status add_of_device(std::uint64_t base, std::uint64_t bytes) MEMSPAN_REQUIRES(mutex_);
  Result<Allocation*> find_or_share(std::uint64_t base, std::uint64_t bytes)
      MEMSPAN_REQUIRES(mutex_);
  // Adds one with a new number that has the bit `kind`.
  Result<Allocation*> publish(ByBase& into, std::uint32_t kind, std::uint64_t base,
                              std::uint64_t bytes, std::vector<Fd> descriptors)
      MEMSPAN_REQUIRES(mutex_) {
    const Range range{.base = base, .bytes = bytes, .allocation = kind | ++last_number_};
    MEMSPAN_PASS_ASSIGN(auto published,
                        publish_in_parts(broker_, record_.allocation_name(range.allocation),
                                         std::move(descriptors)));
    MEMSPAN_PASS(table_.check_room(1));
    Allocation made{
        .range = range, .slot = table_.add_slot(range), .published = std::move(published)};
    return &into.emplace(base, std::move(made)).first->second;
  }
  // Peers do not find it any more.
  void withdraw(const Allocation& allocation) MEMSPAN_REQUIRES(mutex_) {
    table_.remove_slot(allocation.slot);
    exposed_.retract_removed(allocation.range.base);
  }
  Status remove_plain(std::uint64_t base) MEMSPAN_REQUIRES(mutex_);

  DescriptorBroker& broker_;
  const EndpointRecord& record_;
  Device* const device_;  // other than the host; null: the process has none
  std::atomic<std::uint64_t> changes_{0};
  Mutex registering_;  // taken before mutex_, and held while pages are replaced
  ByBase adopted_ MEMSPAN_GUARDED_BY(registering_);
  Mutex mutex_;
  RegistrationTable table_ MEMSPAN_GUARDED_BY(mutex_);
  const RegistrationPages& pages_;                 // of the table
  ByBase allocations_ MEMSPAN_GUARDED_BY(mutex_);  // but the adopted ones
  ExposedRegistrations exposed_ MEMSPAN_GUARDED_BY(mutex_);
  std::uint32_t last_number_ MEMSPAN_GUARDED_BY(mutex_) = 0;
};

}  // namespace memspan::transfer
