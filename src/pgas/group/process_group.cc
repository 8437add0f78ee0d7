// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/process_group.h"

#include <fmt/format.h>

namespace memspan::pgas {

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::join(int rank, int size,
                                                         const Exchange& exchange, Duration limit) {
  MEMSPAN_TRY_ASSIGN(Membership membership, join_by_exchange(rank, size, exchange, limit),
                     "making a group");
  MEMSPAN_TRY_ASSIGN(std::unique_ptr<World> world,
                     World::create(std::move(membership), heap_bytes(size), ProgramVariables::kOwn),
                     "making a group");
  for (int member = 0; member < size; ++member)
    if (!world->route(member).is_direct())
      return Status(Code::kNotSupported,
                    fmt::format("the transport \"{}\" does not map the memory of member {}, and a "
                                "group needs that",
                                world->transport_name(), member));
  world->waiting().limit = limit;
  // A word that another member sets is waited for in vain only when that one dies or leaves.
  world->waiting().survives_deaths.store(true, std::memory_order_relaxed);
  return std::make_unique<ProcessGroup>(std::move(world));
}

ProcessGroup::ProcessGroup(std::unique_ptr<World> world)
    : world_(std::move(world)), team_(Team::world(*world_)) {}

ProcessGroup::~ProcessGroup() {
  leave();
}

std::size_t ProcessGroup::heap_bytes(int size) {
  return kArrivalsBytes + 2 * kStageBytes + static_cast<std::size_t>(size) * kChannelBytes;
}

void ProcessGroup::arrive() {
  ++arrived_;
  const std::uint64_t all = arrived_ * static_cast<std::uint64_t>(size());
  // The last one wakes those who wait for it.
  if (arrivals().fetch_add(1, std::memory_order_acq_rel) + 1 != all) return;
  for (int member = 0; member < size(); ++member)
    if (member != rank()) world_->route(member).notify_meeting();
}

Status ProcessGroup::wait_for_arrivals(Duration patience) {
  const std::uint64_t all = arrived_ * static_cast<std::uint64_t>(size());
  return wait_for(world_->waiting(), WaitsFor::kMeeting, "a collective", Deadline::after(patience),
                  [&] { return arrivals().load(std::memory_order_acquire) >= all; });
}

std::byte* ProcessGroup::channel(int sender, int receiver) const {
  return world_->heap_of(sender) + kArrivalsBytes + 2 * kStageBytes +
         static_cast<std::size_t>(receiver) * kChannelBytes;
}

}  // namespace memspan::pgas
