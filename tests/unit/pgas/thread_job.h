// SPDX-License-Identifier: Apache-2.0
// A whole job inside one process: every peer is a thread with a World of its own, at an address of
// its own. For tests of what needs peers but not processes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <barrier>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "pgas/team.h"
#include "world/membership.h"
#include "world/world.h"

namespace memspan {

inline constexpr std::size_t kJobHeapBytes = 32 << 20;

// An all-gather of texts among threads.
class ThreadExchange {
 public:
  explicit ThreadExchange(int members)
      : texts_(static_cast<std::size_t>(members)), step_(members) {}
  Exchange of(int rank) {
    return [this, rank](const std::string& mine) -> Result<std::vector<std::string>> {
      texts_[static_cast<std::size_t>(rank)] = mine;
      step_.arrive_and_wait();
      std::vector<std::string> all = texts_;
      step_.arrive_and_wait();
      return all;
    };
  }

 private:
  std::vector<std::string> texts_;
  std::barrier<> step_;
};

struct JobShape {
  int peers;
  bool oversubscribed;            // chooses the central counter, else all-to-all flags
  std::vector<int> node_of = {};  // by peer, on simulated hosts; empty: all on one node
  bool has_deaths = false;        // so the peers do not meet at the end
};

// Runs `body` once per peer, each with its world team, and waits for all.
inline void run_job(const JobShape& shape, const std::function<void(Team&)>& body) {
  constexpr std::uint64_t kStride = std::uint64_t{1} << 30;
  const int peers = shape.peers;
  std::vector<std::string> hosts;
  for (int rank = 0; rank < peers; ++rank)
    hosts.push_back(shape.node_of.empty()
                        ? "sim-0"
                        : "sim-" + std::to_string(shape.node_of[static_cast<std::size_t>(rank)]));
  const NodeMap nodes = NodeMap::of_hosts(hosts);
  std::vector<NodeSegment> segments;
  std::vector<Pages> heaps;
  for (int node = 0; node < nodes.count(); ++node) {
    segments.push_back(NodeSegment::create(peers, kStride, shape.oversubscribed).value());
    heaps.push_back(
        Pages::create(static_cast<std::size_t>(nodes.peers_in(node)) * kStride, "test-heap")
            .value());
  }
  ThreadExchange exchange(peers);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < peers; ++rank)
    threads.emplace_back([&, rank] {
      const auto node = static_cast<std::size_t>(nodes.node_of(rank));
      Membership membership(rank, peers);
      membership.nodes = nodes;
      membership.exchange = exchange.of(rank);
      membership.segment = std::make_unique<NodeSegment>(
          NodeSegment::attach(Fd(dup(segments[node].descriptor()))).value());
      membership.heap =
          std::make_unique<Pages>(Pages::adopt(Fd(dup(heaps[node].descriptor()))).value());
      ASSERT_TRUE(claim_rank(*membership.segment, rank).is_ok());
      auto world = World::create(std::move(membership), {kJobHeapBytes});
      ASSERT_TRUE(world.is_ok()) << world.status().to_string();
      auto team = Team::world(**world);
      body(*team);
      if (!shape.has_deaths) {
        const Status met = team->barrier("the end");
        EXPECT_TRUE(met.is_ok()) << met.to_string();
        const Status ended = (*world)->end("the end", EndKind::kFinalize);
        EXPECT_TRUE(ended.is_ok()) << ended.to_string();
      }
      (*world)->leave();
    });
  for (std::thread& thread : threads) thread.join();
}
inline void run_job(int peers, bool oversubscribed, const std::function<void(Team&)>& body) {
  run_job(JobShape{peers, oversubscribed}, body);
}

// The end of what is in use of this process's internal area, if it has no gaps.
inline std::uint64_t end_of_internal_use(World& world) {
  const auto place = world.allocate_internal(kFalseSharingRange);
  world.free_internal(place.value());
  return *place;
}

inline std::string job_name(const testing::TestParamInfo<JobShape>& info) {
  std::string name = std::to_string(info.param.peers);
  if (info.param.node_of.empty())
    return name + (info.param.oversubscribed ? "ByCounter" : "ByFlags");
  name += "OnNodes";
  for (const int node : info.param.node_of) name += std::to_string(node);
  return name;
}
inline auto all_job_shapes() {
  std::vector<JobShape> shapes{{1, false}, {2, false}, {3, false},
                               {4, true},  {8, true},  {8, false}};
  const std::vector<std::vector<int>> nodes{
      {0, 1}, {0, 0, 1}, {0, 1, 1, 1}, {0, 1, 0, 2, 1}, {0, 1, 2, 3, 4, 5}};
  for (const std::vector<int>& node_of : nodes)
    shapes.push_back({static_cast<int>(node_of.size()), true, node_of});
  return testing::ValuesIn(shapes);
}

}  // namespace memspan
