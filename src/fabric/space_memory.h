// SPDX-License-Identifier: Apache-2.0
// The memory of a space in one process: all parts at the same addresses in all processes, those of
// ranks on this host mapped.
//
//   of the host      one memfd of each host, which its lowest rank makes and the others map
//   of a device      each rank makes its part, on its device, and the others of its host map it
//
// Members on other hosts have addresses here, but no memory.
#pragma once

#include <vector>

#include "device/memory.h"
#include "fabric/address_registry.h"
#include "fabric/member.h"

namespace memspan {

// A value: the options of all members.
struct SpacePlan {
  std::string name;        // of the addresses
  std::string group_name;  // of the memory at the descriptor brokers
  std::uint32_t rank = 0;
  std::uint64_t bytes = 0;  // of each part
  Device* device = nullptr;
  std::vector<bool> is_near;                  // by rank: on this host
  std::vector<std::string> broker_addresses;  // by rank
};

// One thread at a time.
class SpaceMemory {
 public:
  SpaceMemory(std::shared_ptr<Member> member, SpacePlan plan)
      : member_(std::move(member)), plan_(std::move(plan)) {}
  SpaceMemory(const SpaceMemory&) = delete;
  SpaceMemory& operator=(const SpaceMemory&) = delete;

  // Reserves the addresses, and publishes the memory that this process makes for others. The caller
  // retracts it when all have called take().
  Status prepare(const Deadline& deadline);
  // Maps the parts of this host, and commits the own part. Call it after all have prepared.
  Status take(const Deadline& deadline) {
    if (all_bytes() == 0) return Status::ok();
    return is_pages() ? take_pages(deadline) : take_near_parts(deadline);
  }
  std::byte* base() { return range().base(); }

 private:
  bool is_pages() const { return plan_.device->is_host(); }
  DeviceRange& range() { return is_pages() ? *range_->host_part() : *range_->device_part(); }
  std::size_t ranks() const { return plan_.is_near.size(); }
  std::size_t all_bytes() const { return plan_.bytes * ranks(); }
  std::size_t lowest_near() const {
    const auto begin = plan_.is_near.begin();
    return static_cast<std::size_t>(std::find(begin, plan_.is_near.end(), true) - begin);
  }
  Status publish(const DeviceMemory& memory) {
    MEMSPAN_TRY_ASSIGN(Fd descriptor, memory.duplicate(), "handing out the memory of the space");
    std::vector<Fd> descriptors;
    descriptors.push_back(std::move(descriptor));
    return member_->broker().publish(plan_.group_name, std::move(descriptors));
  }
  Result<std::unique_ptr<DeviceMemory>> fetch(std::size_t rank, const Deadline& deadline);
  Status prepare_pages();
  Status prepare_own_part() {
    MEMSPAN_TRY_ASSIGN(memory_, plan_.device->allocate(plan_.bytes, "memspan-space"),
                       "making the part of the space");
    return publish(*memory_);
  }
  Status take_pages(const Deadline& deadline);
  Status take_near_parts(const Deadline& deadline);
  Status map_near_pages();

  const std::shared_ptr<Member> member_;  // shared with what else this process has at the store
  const SpacePlan plan_;
  std::optional<AddressRange> range_;
  std::unique_ptr<DeviceMemory> memory_;  // all pages of this host, or the own part
};

}  // namespace memspan
