// SPDX-License-Identifier: Apache-2.0
#include "fabric/space_memory.h"

#include <algorithm>

#include "core/pages.h"
#include "device/host/host_device.h"
#include "memory/budget.h"

namespace memspan {
namespace {

const Pages& pages_of(const DeviceMemory& memory) {
  return static_cast<const HostMemory&>(memory).pages();
}

// Huge ones are taken at once, also for parts that other hosts have.
Result<Pages> make_pages(std::size_t bytes, bool may_be_huge) {
  constexpr const char* kLabel = "memspan-space";
  if (bytes >= kHugePage && may_be_huge)
    if (auto huge = Pages::create_huge(bytes, kLabel); huge.is_ok()) return huge;
  return Pages::create(bytes, kLabel);
}

}  // namespace

Status SpaceMemory::prepare(const Deadline& deadline) {
  // A space without memory has an address all the same.
  const std::size_t bytes = align_up(std::max<std::size_t>(all_bytes(), 1), kDeviceGranularity);
  MEMSPAN_PASS_ASSIGN(auto range,
                      AddressRange::claim(member_, plan_.name,
                                          {.host_bytes = is_pages() ? bytes : 0,
                                           .device = plan_.device,
                                           .device_bytes = is_pages() ? 0 : bytes},
                                          fmt::format("{} ranks with {} bytes of {} memory each",
                                                      ranks(), plan_.bytes, plan_.device->name()),
                                          deadline));
  range_.emplace(std::move(range));
  if (all_bytes() == 0) return Status::ok();
  return is_pages() ? prepare_pages() : prepare_own_part();
}

Result<std::unique_ptr<DeviceMemory>> SpaceMemory::fetch(std::size_t rank,
                                                         const Deadline& deadline) {
  MEMSPAN_PASS_ASSIGN(auto answer, member_->broker().fetch_and_wait(plan_.broker_addresses[rank],
                                                                    plan_.group_name, deadline));
  if (answer.descriptors.size() != 1)
    return Status(Code::kInternal, "the memory of the space was not handed over");
  MEMSPAN_TRY_ASSIGN(auto memory, plan_.device->adopt(std::move(answer.descriptors[0])),
                     "taking over the memory of the space");
  return memory;
}

// ---- memory of the host

// The lowest rank of this host makes the memory, which takes none yet.
Status SpaceMemory::prepare_pages() {
  if (lowest_near() != plan_.rank) return Status::ok();
  const auto& is_near = plan_.is_near;
  const bool is_alone = std::find(is_near.begin(), is_near.end(), false) == is_near.end();
  MEMSPAN_TRY_ASSIGN(Pages pages, make_pages(all_bytes(), is_alone), "making memory");
  memory_ = std::make_unique<HostMemory>(std::move(pages));
  return publish(*memory_);
}

Status SpaceMemory::take_pages(const Deadline& deadline) {
  if (memory_ == nullptr) {
    MEMSPAN_TRY_ASSIGN(memory_, fetch(lowest_near(), deadline), "the space");
  }
  const Pages& pages = pages_of(*memory_);
  if (pages.bytes() < all_bytes() || pages.bytes() > range().bytes())
    return {Code::kInternal, "the memory of the space has another size"};
  MEMSPAN_PASS(map_near_pages());
  if (pages.is_huge()) return Status::ok();
  const std::size_t begin = plan_.bytes * plan_.rank;
  return commit_within_budget({pages, begin, base() + begin, plan_.bytes}, "the part of the space");
}

// A page that a near part and a far one share is mapped.
Status SpaceMemory::map_near_pages() {
  const Pages& pages = pages_of(*memory_);
  Reservation& reservation = static_cast<HostRange&>(range()).reservation();
  const auto begin_of_all = plan_.is_near.begin(), end = plan_.is_near.end();
  for (auto from = begin_of_all; from != end;) {
    from = std::find(from, end, true);
    const auto to = std::find(from, end, false);
    const auto index_of = [&](auto it) { return static_cast<std::size_t>(it - begin_of_all); };
    const std::size_t begin = index_of(from) * plan_.bytes / page_size() * page_size();
    const std::size_t past =
        to == end ? pages.bytes() : align_up(index_of(to) * plan_.bytes, page_size());
    if (from != end) MEMSPAN_PASS(reservation.map(begin, pages, begin, past - begin));
    from = to;
  }
  return Status::ok();
}

// ---- memory of another device

Status SpaceMemory::take_near_parts(const Deadline& deadline) {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (!plan_.is_near[rank]) continue;
    std::unique_ptr<DeviceMemory> part;
    if (rank != plan_.rank) {
      MEMSPAN_TRY_ASSIGN(part, fetch(rank, deadline), fmt::format("the part of rank {}", rank));
    }
    MEMSPAN_TRY(range().map(rank * plan_.bytes, part == nullptr ? *memory_ : *part, plan_.bytes),
                fmt::format("the part of rank {}", rank));
  }
  return Status::ok();
}

}  // namespace memspan
