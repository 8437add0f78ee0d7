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
  return std::make_unique<ProcessGroup>(std::move(world));
}

ProcessGroup::ProcessGroup(std::unique_ptr<World> world)
    : world_(std::move(world)), team_(Team::world(*world_)) {}

ProcessGroup::~ProcessGroup() {
  world_->leave();
}

std::size_t ProcessGroup::heap_bytes(int size) {
  return 2 * kStageBytes + static_cast<std::size_t>(size) * kChannelBytes;
}

std::byte* ProcessGroup::channel(int sender, int receiver) const {
  return world_->heap_of(sender) + 2 * kStageBytes +
         static_cast<std::size_t>(receiver) * kChannelBytes;
}

}  // namespace memspan::pgas
