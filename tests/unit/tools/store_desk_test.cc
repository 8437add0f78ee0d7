// SPDX-License-Identifier: Apache-2.0
#include "launcher/store_desk.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <string>
#include <thread>
#include <vector>

#include "world/membership.h"

namespace memspan::launcher {
namespace {

void wait_until_readable(int descriptor) {
  pollfd polled{descriptor, POLLIN, 0};
  ASSERT_EQ(poll(&polled, 1, 10000), 1);
}

TEST(StoreDeskTest, ASocketThatEndsTellsThatItsProcessIsGone) {
  StoreDesk desk(1);
  Fd theirs = std::move(desk.open(0)).value();
  EXPECT_FALSE(desk.serve(0).value());  // nothing has come
  theirs.reset();
  EXPECT_TRUE(desk.serve(0).value());
  EXPECT_TRUE(desk.serve(0).value());
}

// Two processes of a launch, as threads; this thread is the launcher.
TEST(StoreDeskTest, ProcessesExchangeTextsAndKeepTheirSockets) {
  StoreDesk desk(2);
  const NodeSegment segment = std::move(NodeSegment::create(2, 1 << 20, false)).value();
  std::vector<Fd> theirs;
  for (int rank = 0; rank < 2; ++rank) theirs.push_back(std::move(desk.open(rank)).value());
  std::vector<std::thread> processes;
  std::vector<std::string> heard(2);
  for (int rank = 0; rank < 2; ++rank)
    processes.emplace_back([&, rank] {
      Launch launch;
      launch.rank = rank;
      launch.size = 2;
      launch.store = theirs[static_cast<std::size_t>(rank)].get();
      const Exchange exchange = exchange_over_launcher(launch, segment);
      for (const char* round : {"a", "b"}) {
        const auto texts = exchange(round + std::to_string(rank));
        ASSERT_TRUE(texts.is_ok()) << texts.status().message();
        for (const std::string& text : *texts) heard[static_cast<std::size_t>(rank)] += text + " ";
      }
    });
  for (int rank = 0; rank < 2; ++rank) {
    wait_until_readable(desk.descriptor(rank));
    EXPECT_FALSE(desk.serve(rank).value());
  }
  for (std::thread& process : processes) process.join();
  EXPECT_EQ(heard[0], "a0 a1 b0 b1 ");
  EXPECT_EQ(heard[1], heard[0]);
  // The sockets are lifelines still.
  theirs[0].reset();
  wait_until_readable(desk.descriptor(0));
  EXPECT_TRUE(desk.serve(0).value());
}

TEST(StoreDeskTest, NobodyWaitsForOneThatDied) {
  StoreDesk desk(2);
  const NodeSegment segment = std::move(NodeSegment::create(2, 1 << 20, false)).value();
  segment.mark_lost(1, kUnseenEnd);
  const Fd socket = std::move(desk.open(0)).value();
  std::thread process([&] {
    Launch launch;
    launch.size = 2;
    launch.store = socket.get();
    EXPECT_EQ(exchange_over_launcher(launch, segment)("x").code(), Code::kPeerLost);
  });
  wait_until_readable(desk.descriptor(0));
  EXPECT_FALSE(desk.serve(0).value());
  process.join();
}

}  // namespace
}  // namespace memspan::launcher
