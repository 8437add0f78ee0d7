// SPDX-License-Identifier: Apache-2.0
// A group whose members are threads that exchange texts through this process's memory.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "pgas/group/process_group.h"
#include "unit/pgas/thread_job.h"

namespace memspan {

// One host for each member; those with the same one share memory.
using GroupHosts = std::vector<std::string>;

// Runs `body` once for each member and waits for all.
inline void run_group(const GroupHosts& hosts,
                      const std::function<void(pgas::ProcessGroup&)>& body) {
  const int members = static_cast<int>(hosts.size());
  ThreadExchange exchange(members);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < members; ++rank)
    threads.emplace_back([&, rank] {
      auto group =
          pgas::ProcessGroup::join(rank, members, exchange.of(rank), std::chrono::seconds(60),
                                   hosts[static_cast<std::size_t>(rank)]);
      ASSERT_TRUE(group.is_ok()) << group.status().to_string();
      body(**group);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace memspan
