// SPDX-License-Identifier: Apache-2.0
#include "world/hand_over.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "core/unix_socket.h"
#include "device/pages.h"

namespace memspan {
namespace {

Deadline soon() {
  return Deadline::after(std::chrono::seconds(20));
}

TEST(HandOverTest, EveryMemberGetsTheMemoryAndLeavesAPidfd) {
  Pages board = Pages::create(4096, "board").value();
  Pages heap = Pages::create(8192, "heap").value();
  HandOver keeper = HandOver::open().value();
  std::vector<std::thread> members;
  for (int rank : {2, 1})
    members.emplace_back([&keeper, rank] {
      auto handed = take_over(keeper.ticket(), rank, soon());
      ASSERT_TRUE(handed.is_ok()) << handed.status().to_string();
      EXPECT_EQ(Pages::adopt(std::move(handed->board))->bytes(), 4096u);
      EXPECT_EQ(Pages::adopt(std::move(handed->heap))->bytes(), 8192u);
      EXPECT_TRUE(handed->keeper.is_valid());
      EXPECT_TRUE(handed->connection.is_valid());
    });
  auto served = keeper.serve(3, board.descriptor(), heap.descriptor(), soon());
  for (std::thread& member : members) member.join();
  ASSERT_TRUE(served.is_ok());
  EXPECT_FALSE((*served)[0].pidfd.is_valid());
  for (int rank : {1, 2}) {
    EXPECT_TRUE((*served)[static_cast<std::size_t>(rank)].pidfd.is_valid());
    EXPECT_TRUE((*served)[static_cast<std::size_t>(rank)].connection.is_valid());
  }
}

TEST(HandOverTest, NamesWhoDidNotCome) {
  HandOver keeper = HandOver::open().value();
  auto pidfds = keeper.serve(4, 0, 0, Deadline::after(std::chrono::milliseconds(5)));
  EXPECT_EQ(pidfds.code(), Code::kTimeout);
  EXPECT_THAT(pidfds.status().message(), testing::HasSubstr("1, 2, 3"));
}

TEST(HandOverTest, AStrangerWithoutTheNonceGetsNothing) {
  Pages memory = Pages::create(4096, "memory").value();
  HandOver keeper = HandOver::open().value();
  std::string name = keeper.ticket().substr(0, keeper.ticket().find(' '));
  std::thread stranger([&] {
    EXPECT_EQ(take_over(name + " 00000000000000000000000000000000", 1, soon()).code(),
              Code::kUnavailable);
    EXPECT_TRUE(take_over(keeper.ticket(), 1, soon()).is_ok());
  });
  EXPECT_TRUE(keeper.serve(2, memory.descriptor(), memory.descriptor(), soon()).is_ok());
  stranger.join();
}

}  // namespace
}  // namespace memspan
