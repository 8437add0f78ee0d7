// SPDX-License-Identifier: Apache-2.0
#include "worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "member.h"
#include "resources.h"

namespace memspan::scale {
namespace {

// Every member passes it together with all others, so one thread may look at the whole process in
// between.
Status measure(Member& member, bool is_first, const std::function<void()>& look) {
  MEMSPAN_PASS(member.meet());
  if (is_first) look();
  return member.meet();
}

Status live(const Worker& worker, int rank, const StoreAccess& store) {
  const Plan& plan = worker.plan;
  const bool is_first = rank == worker.first;
  Member member(plan, rank, store, worker.report.members[rank]);
  MEMSPAN_PASS(member.connect());
  MEMSPAN_PASS(measure(member, is_first, [&] { worker.mine.connected_bytes = resident_bytes(); }));
  MEMSPAN_PASS(member.join());
  MEMSPAN_PASS(measure(member, is_first, [&] { worker.mine.joined_bytes = resident_bytes(); }));
  MEMSPAN_PASS(member.run_barriers());
  MEMSPAN_PASS(measure(member, is_first, [&] {
    worker.mine.descriptors = open_descriptors();
    worker.mine.most_bytes = most_resident_bytes();
  }));
  MEMSPAN_PASS(member.join_pool());
  if (plan.finish == Finish::kEnd) return member.end();
  if (rank != plan.members - 1) return member.wait_for_death();
  const char byte = 0;
  if (write(worker.ready, &byte, 1) != 1) return Status::from_errno("telling that it is time");
  while (true) pause();
}

}  // namespace

void Worker::run(const StoreAccess& store) const {
  std::vector<std::thread> threads;
  for (int rank = first; rank < last; ++rank)
    threads.emplace_back([this, rank, &store] {
      const Status status = live(*this, rank, store);
      MemberReport& its = report.members[rank];
      its.failed = !status.is_ok();
      const std::string why = status.message().substr(0, kReasonBytes - 1);
      std::copy(why.begin(), why.end(), its.why);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace memspan::scale
