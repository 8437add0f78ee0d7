// SPDX-License-Identifier: Apache-2.0
// One member of the simulated job: an object that joins as a process of a node of its own would,
// through the built-in store, and reaches all others over sockets.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pgas/team.h"
#include "report.h"
#include "store/connect.h"
#include "store/recipes/store_group.h"
#include "world/world.h"

namespace memspan::scale {

// One thread at a time. Every call that waits does so for `plan.limit_s` at most.
class Member {
 public:
  // `report` must outlive it.
  Member(const Plan& plan, int rank, StoreAccess store, MemberReport& report);
  ~Member();

  Status connect();
  // Meets all others at the store: what they did before is done.
  Status meet();
  Status join();
  Status run_barriers();
  // Enters a pool at the store as smem_bm_join does (a watch, a record, a list): the last member
  // when all others have heard of each other.
  Status join_pool();
  Status end();
  // The last member dies in it: waits in a barrier that cannot be, and checks who is lost.
  Status wait_for_death();

 private:
  Deadline deadline() const { return Deadline::after(from_seconds(plan_.limit_s)); }
  std::uint64_t counter(std::string_view name) const;

  const Plan& plan_;
  const int rank_;
  const StoreAccess access_;
  MemberReport& report_;
  std::unique_ptr<KeyValueStore> store_;
  std::unique_ptr<StoreGroup> group_;
  std::unique_ptr<World> world_;
  std::unique_ptr<Team> team_;
};

}  // namespace memspan::scale
