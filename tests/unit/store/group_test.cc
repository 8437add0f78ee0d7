// SPDX-License-Identifier: Apache-2.0
#include "store/group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "support.h"

namespace memspan {
namespace {

// Every member is a thread with a client of its own.
void run_members(StoreServer& server, int size, const std::function<void(Group&, int)>& member) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&server, &member, rank, size] {
      auto client = client_of(server);
      Group group(*client, "all", rank, size);
      member(group, rank);
    });
  for (auto& thread : threads) thread.join();
}

TEST(GroupTest, NobodyLeavesABarrierBeforeEverybodyCame) {
  constexpr int kMembers = 8;
  auto server = server_without_listener();
  std::atomic<int> came = 0;
  run_members(*server, kMembers, [&](Group& group, int) {
    for (int round = 1; round <= 20; ++round) {
      came.fetch_add(1);
      ASSERT_TRUE(group.barrier(soon()).is_ok());
      EXPECT_GE(came.load(), round * kMembers);
    }
  });
}

TEST(GroupTest, AllgatherGivesEverybodysBytesByRank) {
  constexpr int kMembers = 8;
  auto server = server_without_listener();
  run_members(*server, kMembers, [](Group& group, int rank) {
    for (int round = 0; round < 10; ++round) {
      const std::string mine(static_cast<std::size_t>(rank * round), static_cast<char>('a' + rank));
      auto all = group.allgather(mine, soon());
      ASSERT_TRUE(all.is_ok()) << all.status().to_string();
      ASSERT_EQ(all->size(), static_cast<std::size_t>(kMembers));
      EXPECT_EQ((*all)[static_cast<std::size_t>(rank)], mine);
      EXPECT_EQ((*all)[7], std::string(static_cast<std::size_t>(7 * round), 'h'));
    }
  });
}

TEST(GroupTest, AGroupOfOneWaitsForNobody) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  Group group(*client, "alone", 0, 1);
  EXPECT_TRUE(group.barrier(soon()).is_ok());
  EXPECT_EQ(*group.allgather("mine", soon()), std::vector<std::string>{"mine"});
}

TEST(GroupTest, GroupsOfDifferentNamesDoNotMeet) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  Group one(*client, "one", 0, 1);
  Group two(*client, "two", 0, 1);
  EXPECT_EQ((*one.allgather("1", soon()))[0], "1");
  EXPECT_EQ((*two.allgather("2", soon()))[0], "2");
}

// One thread plays all members: each leaves at its time-out and says who was not there.
TEST(GroupTest, NamesTheMembersThatAreMissingAtTheTimeOut) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  auto arrive = [&](int rank, Duration patience) {
    return Group(*client, "all", rank, 3).barrier(Deadline::after(patience));
  };
  const Status first = arrive(1, std::chrono::milliseconds(500));
  EXPECT_EQ(first.code(), Code::kTimeout);
  EXPECT_NE(first.message().find("missing of 3 members: rank 0, 2:"), std::string::npos)
      << first.message();
  const Status second = arrive(0, std::chrono::milliseconds(500));
  EXPECT_NE(second.message().find("missing of 3 members: rank 2:"), std::string::npos)
      << second.message();
  EXPECT_TRUE(arrive(2, std::chrono::seconds(60)).is_ok());
}

TEST(GroupTest, AFailedOperationStillCounts) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  Group first(*client, "all", 0, 2);
  Group second(*client, "all", 1, 2);
  EXPECT_EQ(first.barrier(Deadline::after(std::chrono::milliseconds(400))).code(), Code::kTimeout);
  EXPECT_TRUE(second.barrier(soon()).is_ok());
  auto later = std::thread([&] { EXPECT_EQ((*second.allgather("b", soon()))[0], "a"); });
  EXPECT_EQ((*first.allgather("a", soon()))[1], "b");
  later.join();
}

TEST(GroupTest, FindsTwoMembersOfTheSameRank) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  Group first(*client, "all", 0, 3);
  Group second(*client, "all", 0, 3);
  EXPECT_EQ(first.barrier(Deadline::after(std::chrono::milliseconds(400))).code(), Code::kTimeout);
  const Status status = second.barrier(Deadline::after(std::chrono::milliseconds(400)));
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("two members have the rank 0"), std::string::npos);
}

TEST(GroupTest, RefusesMoreBytesThanFitForEverybody) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  Group group(*client, "all", 0, 2);
  auto all = group.allgather(std::string(kMaxValueBytes / 2 - 7, 'v'), soon());
  EXPECT_EQ(all.code(), Code::kInvalidArgument);
}

TEST(GroupTest, ClearsTheKeysOfOperationsThatAreOver) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  Group group(*client, "all", 0, 1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(group.barrier(soon()).is_ok());
  for (const char* what : {"parts", "count", "done"}) {
    EXPECT_EQ(client->get_now(std::string("all/1/") + what, soon()).code(), Code::kNotFound);
    EXPECT_TRUE(client->get_now(std::string("all/2/") + what, soon()).is_ok());
  }
}

TEST(GroupTest, ReportsALostStore) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  Group group(*client, "all", 0, 2);
  server.reset();
  EXPECT_EQ(group.barrier(soon()).code(), Code::kStoreLost);
  EXPECT_EQ(group.allgather("", soon()).code(), Code::kStoreLost);
}

}  // namespace
}  // namespace memspan
