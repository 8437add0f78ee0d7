// SPDX-License-Identifier: Apache-2.0
// A whole job inside one process: every peer is a thread with a World of its own, at an address of
// its own. For tests of what needs peers but not processes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "pgas/team.h"
#include "world/membership_steps.h"
#include "world/world.h"

namespace memspan {

inline constexpr std::size_t kJobHeapBytes = 32 << 20;

// Runs `body` once per peer, each with its world team, and waits for all. `oversubscribed` chooses
// how teams meet: by flags (false) or by counter (true).
inline void run_job(int peers, bool oversubscribed, const std::function<void(Team&)>& body) {
  constexpr std::uint64_t kStride = std::uint64_t{1} << 30;
  Board board = Board::create(peers, kStride, oversubscribed).value();
  Pages heap = Pages::create(static_cast<std::size_t>(peers) * kStride, "test-heap").value();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < peers; ++rank)
    threads.emplace_back([&, rank] {
      Membership membership(rank, peers);
      membership.board =
          std::make_unique<Board>(Board::attach(Fd(dup(board.descriptor()))).value());
      membership.heap = std::make_unique<Pages>(Pages::adopt(Fd(dup(heap.descriptor()))).value());
      ASSERT_TRUE(claim_rank(*membership.board, rank).is_ok());
      auto world = World::create(std::move(membership), kJobHeapBytes);
      ASSERT_TRUE(world.is_ok()) << world.status().to_string();
      auto team = Team::world(**world);
      body(*team);
      ASSERT_TRUE(team->meet("the end").is_ok());
      (*world)->leave();
    });
  for (std::thread& thread : threads) thread.join();
}

// One (peers, oversubscribed) per test.
struct JobShape {
  int peers;
  bool oversubscribed;
};
inline std::string job_name(const testing::TestParamInfo<JobShape>& info) {
  return std::to_string(info.param.peers) + (info.param.oversubscribed ? "ByCounter" : "ByFlags");
}
inline auto all_job_shapes() {
  return testing::Values(JobShape{1, false}, JobShape{2, false}, JobShape{3, false},
                         JobShape{4, true}, JobShape{8, true}, JobShape{8, false});
}

}  // namespace memspan
