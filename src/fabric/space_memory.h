// SPDX-License-Identifier: Apache-2.0
// The memory of a space in one process: all parts at the same addresses in all processes, those of
// ranks on this host mapped.
//
//   of the host      one memfd of each host, which its lowest rank makes and the others map
//   of a device      each rank makes its part, on its device, and the others of its host map it
//
// Members on other hosts have addresses here, but no memory.
#pragma once

#include <algorithm>
#include <vector>

#include "core/pages.h"
#include "fabric/address_registry.h"
#include "fabric/space.h"
#include "memory/budget.h"

namespace memspan {

// One thread at a time.
class SpaceMemory {
 public:
  // The space outlives it. By rank: the address of its broker.
  SpaceMemory(const Space& space, std::vector<std::string> broker_addresses)
      : space_(space), broker_addresses_(std::move(broker_addresses)) {}

  // Reserves the addresses, and publishes the memory that this process makes for others. The caller
  // retracts it when all have called take().
  Status prepare(const Deadline& deadline) {
    // A space without memory has an address all the same.
    const std::size_t bytes = align_up(std::max<std::size_t>(all_bytes(), 1), kDeviceGranularity);
    MEMSPAN_PASS_ASSIGN(
        range_, AddressRange::claim(space_.member_, options().name,
                                    {.device = options().device, .device_bytes = bytes},
                                    fmt::format("{} ranks with {} bytes of {} memory each", ranks(),
                                                options().bytes, options().device->name()),
                                    deadline));
    if (all_bytes() == 0) return Status::ok();
    if (!is_pages()) {
      MEMSPAN_TRY_ASSIGN(memory_, options().device->allocate(options().bytes, "memspan-space"),
                         "making the part of the space");
    } else if (lowest_near() == options().rank) {
      // Takes no memory yet; huge pages are taken at once, also for parts that other hosts have.
      const bool is_alone = std::find(is_near().begin(), is_near().end(), false) == is_near().end();
      MEMSPAN_TRY_ASSIGN(Pages pages, make_pages(all_bytes(), is_alone, "memspan-space"),
                         "making memory");
      memory_ = std::make_unique<HostMemory>(std::move(pages));
    }
    if (memory_ == nullptr) return Status::ok();
    std::vector<Fd> descriptors(1);
    MEMSPAN_TRY_ASSIGN(descriptors[0], memory_->duplicate(), "handing out the memory of the space");
    return space_.member_->broker().publish(space_.group_name_, std::move(descriptors));
  }
  // Maps the parts of this host, and commits the own part. Call it after all have prepared.
  Status take(const Deadline& deadline) {
    if (all_bytes() == 0) return Status::ok();
    return is_pages() ? take_pages(deadline) : take_near_parts(deadline);
  }
  std::byte* base() { return range().base(); }

 private:
  const SpaceOptions& options() const { return space_.options_; }
  const std::vector<bool>& is_near() const { return space_.is_near_; }
  bool is_pages() const { return options().device->is_host(); }
  DeviceRange& range() { return *range_->device_part(); }
  std::size_t ranks() const { return options().ranks; }
  std::size_t all_bytes() const { return options().bytes * ranks(); }
  std::size_t lowest_near() const {
    const auto begin = is_near().begin();
    return static_cast<std::size_t>(std::find(begin, is_near().end(), true) - begin);
  }
  Result<std::unique_ptr<DeviceMemory>> fetch(std::size_t rank, const Deadline& deadline) {
    MEMSPAN_PASS_ASSIGN(auto answer, space_.member_->broker().fetch_and_wait(
                                         broker_addresses_[rank], space_.group_name_, deadline));
    if (answer.descriptors.size() != 1)
      return Status(Code::kInternal, "the memory of the space was not handed over");
    MEMSPAN_TRY_ASSIGN(auto memory, options().device->adopt(std::move(answer.descriptors[0])),
                       "taking over the memory of the space");
    return memory;
  }
  Status take_pages(const Deadline& deadline) {
    if (memory_ == nullptr) {
      MEMSPAN_TRY_ASSIGN(memory_, fetch(lowest_near(), deadline), "the space");
    }
    const Pages& pages = static_cast<const HostMemory&>(*memory_).pages();
    if (pages.bytes() < all_bytes() || pages.bytes() > range().bytes())
      return {Code::kInternal, "the memory of the space has another size"};
    MEMSPAN_PASS(map_near_pages(pages));
    if (pages.is_huge()) return Status::ok();
    const std::size_t begin = options().bytes * options().rank;
    return commit_within_budget({pages, begin, base() + begin, options().bytes},
                                "the part of the space");
  }
  Status take_near_parts(const Deadline& deadline) {
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      if (!is_near()[rank]) continue;
      std::unique_ptr<DeviceMemory> part;
      if (rank != options().rank) {
        MEMSPAN_TRY_ASSIGN(part, fetch(rank, deadline), fmt::format("the part of rank {}", rank));
      }
      MEMSPAN_TRY(
          range().map(rank * options().bytes, part == nullptr ? *memory_ : *part, options().bytes),
          fmt::format("the part of rank {}", rank));
    }
    return Status::ok();
  }
  // A page that a near part and a far one share is mapped.
  Status map_near_pages(const Pages& pages) {
    auto& reservation = static_cast<Reservation&>(range());
    const auto begin_of_all = is_near().begin(), end = is_near().end();
    for (auto from = begin_of_all; from != end;) {
      from = std::find(from, end, true);
      const auto to = std::find(from, end, false);
      const auto index_of = [&](auto it) { return static_cast<std::size_t>(it - begin_of_all); };
      const std::size_t begin = index_of(from) * options().bytes / page_size() * page_size();
      const std::size_t past =
          to == end ? pages.bytes() : align_up(index_of(to) * options().bytes, page_size());
      if (from != end) MEMSPAN_PASS(reservation.map(begin, pages, begin, past - begin));
      from = to;
    }
    return Status::ok();
  }

  const Space& space_;
  const std::vector<std::string> broker_addresses_;
  std::unique_ptr<AddressRange> range_;
  std::unique_ptr<DeviceMemory> memory_;  // all pages of this host, or the own part
};

}  // namespace memspan
