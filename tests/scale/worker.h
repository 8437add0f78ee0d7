// SPDX-License-Identifier: Apache-2.0
// A process of the simulation: some of the members, a thread each.
#pragma once

#include "report.h"
#include "store/client.h"

namespace memspan::scale {

// The members [first, last) from beginning to end. What fails stands in their reports. `ready` is
// called once, before the last member waits for its death.
struct Worker {
  const Plan& plan;
  Report& report;
  WorkerReport& mine;
  int first;
  int last;
  int ready;  // a descriptor: one byte is written when the last member is about to be killed
  void run(const StoreAccess& store) const;
};

}  // namespace memspan::scale
