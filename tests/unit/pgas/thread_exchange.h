// SPDX-License-Identifier: Apache-2.0
// A group whose members are threads that exchange texts through this process's memory.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "pgas/group/process_group.h"

namespace memspan {

// Runs `body` once for each member and waits for all.
inline void run_group(int members, const std::function<void(pgas::ProcessGroup&)>& body) {
  std::vector<std::string> texts(static_cast<std::size_t>(members));
  std::barrier meeting(members);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < members; ++rank)
    threads.emplace_back([&, rank] {
      const auto exchange = [&](const std::string& mine) -> Result<std::vector<std::string>> {
        texts[static_cast<std::size_t>(rank)] = mine;
        meeting.arrive_and_wait();
        std::vector<std::string> all = texts;
        meeting.arrive_and_wait();
        return all;
      };
      auto group = pgas::ProcessGroup::join(rank, members, exchange, std::chrono::seconds(60));
      ASSERT_TRUE(group.is_ok()) << group.status().to_string();
      body(**group);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace memspan
