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

// Members that are threads of this process.
std::vector<ProcessIdentity> threads(std::size_t members) {
  return std::vector<ProcessIdentity>(members, ProcessIdentity::own());
}

TEST(HandOverTest, EveryMemberGetsTheMemoryAndLeavesAPidfd) {
  Pages board = Pages::create(4096, "board").value();
  Pages heap = Pages::create(8192, "heap").value();
  HandOver keeper = HandOver::open(Channel::kPrivate).value();
  std::vector<std::thread> members;
  for (int rank : {2, 1})
    members.emplace_back([&keeper, rank] {
      auto handed = take_over(ProcessIdentity::own(), keeper.ticket(), rank, soon());
      ASSERT_TRUE(handed.is_ok()) << handed.status().to_string();
      EXPECT_EQ(Pages::adopt(std::move(handed->board))->bytes(), 4096u);
      EXPECT_EQ(Pages::adopt(std::move(handed->heap))->bytes(), 8192u);
      EXPECT_TRUE(handed->keeper.is_valid());
      EXPECT_TRUE(handed->connection.is_valid());
    });
  auto served = keeper.serve(threads(3), board.descriptor(), heap.descriptor(), soon());
  for (std::thread& member : members) member.join();
  ASSERT_TRUE(served.is_ok());
  EXPECT_FALSE((*served)[0].pidfd.is_valid());
  for (int rank : {1, 2}) {
    EXPECT_TRUE((*served)[static_cast<std::size_t>(rank)].pidfd.is_valid());
    EXPECT_TRUE((*served)[static_cast<std::size_t>(rank)].connection.is_valid());
  }
}

TEST(HandOverTest, NamesWhoDidNotCome) {
  HandOver keeper = HandOver::open(Channel::kPrivate).value();
  auto pidfds = keeper.serve(threads(4), 0, 0, Deadline::after(std::chrono::milliseconds(5)));
  EXPECT_EQ(pidfds.code(), Code::kTimeout);
  EXPECT_THAT(pidfds.status().message(), testing::HasSubstr("1, 2, 3"));
}

TEST(HandOverTest, AStrangerWithoutTheNonceGetsNothing) {
  Pages memory = Pages::create(4096, "memory").value();
  HandOver keeper = HandOver::open(Channel::kPrivate).value();
  std::string name = keeper.ticket().substr(0, keeper.ticket().find(' '));
  std::thread stranger([&] {
    const ProcessIdentity own = ProcessIdentity::own();
    EXPECT_EQ(take_over(own, name + " 00000000000000000000000000000000", 1, soon()).code(),
              Code::kUnavailable);
    EXPECT_TRUE(take_over(own, keeper.ticket(), 1, soon()).is_ok());
  });
  EXPECT_TRUE(keeper.serve(threads(2), memory.descriptor(), memory.descriptor(), soon()).is_ok());
  stranger.join();
}

TEST(HandOverTest, AProcessThatIsNoneOfTheMembersGetsNothing) {
  Pages memory = Pages::create(4096, "memory").value();
  HandOver keeper = HandOver::open(Channel::kOpen).value();
  EXPECT_EQ(keeper.ticket().back(), ' ') << "no nonce where others listen";
  const ProcessIdentity own = ProcessIdentity::own();
  const ProcessIdentity parent{getppid(), own.pid_namespace};
  std::thread stranger(
      [&] { EXPECT_EQ(take_over(own, keeper.ticket(), 1, soon()).code(), Code::kUnavailable); });
  auto pidfds = keeper.serve({own, parent}, memory.descriptor(), memory.descriptor(),
                             Deadline::after(std::chrono::milliseconds(500)));
  EXPECT_EQ(pidfds.code(), Code::kTimeout);
  stranger.join();
  EXPECT_EQ(take_over(parent, keeper.ticket(), 1, soon()).code(), Code::kAuth);
}

TEST(HandOverTest, AProcessSaysWhoItIsInWords) {
  const auto same = ProcessIdentity::parse(ProcessIdentity::own().to_string());
  ASSERT_TRUE(same.is_ok());
  EXPECT_EQ(same->process, getpid());
  EXPECT_NE(same->pid_namespace, 0);
  for (const char* text : {"", "1", "x 2", "0 2", "1 -2", "1 2 3"})
    EXPECT_EQ(ProcessIdentity::parse(text).code(), Code::kInvalidArgument) << text;
}

}  // namespace
}  // namespace memspan
