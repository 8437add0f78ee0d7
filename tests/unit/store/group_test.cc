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
  const Status first = arrive(1, std::chrono::milliseconds(50));
  EXPECT_EQ(first.code(), Code::kTimeout);
  EXPECT_NE(first.message().find("2 of 3 members did not come: rank 0, 2"), std::string::npos)
      << first.message();
  const Status second = arrive(0, std::chrono::milliseconds(50));
  EXPECT_NE(second.message().find("1 of 3 members did not come: rank 2"), std::string::npos)
      << second.message();
  EXPECT_TRUE(arrive(2, std::chrono::seconds(60)).is_ok());
}

TEST(GroupTest, AFailedOperationStillCounts) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  Group first(*client, "all", 0, 2);
  Group second(*client, "all", 1, 2);
  EXPECT_EQ(first.barrier(Deadline::after(std::chrono::milliseconds(50))).code(), Code::kTimeout);
  EXPECT_TRUE(second.barrier(soon()).is_ok());
  auto later = std::thread([&] { EXPECT_EQ((*second.allgather("b", soon()))[0], "a"); });
  EXPECT_EQ((*first.allgather("a", soon()))[1], "b");
  later.join();
}

TEST(GroupTest, RefusesASecondMemberOfTheSameRank) {
  auto server = server_without_listener();
  auto anna = client_of(*server);
  auto ben = client_of(*server);
  EXPECT_EQ(
      Group(*anna, "all", 0, 3).barrier(Deadline::after(std::chrono::milliseconds(50))).code(),
      Code::kTimeout);
  const Status status = Group(*ben, "all", 0, 3).barrier(soon());
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.message().find("rank 0 is taken by a test"), std::string::npos)
      << status.message();
}

TEST(GroupTest, RefusesAnotherSizeAndNamesBoth) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  EXPECT_EQ(
      Group(*client, "all", 0, 3).barrier(Deadline::after(std::chrono::milliseconds(50))).code(),
      Code::kTimeout);
  const Status status = Group(*client, "all", 1, 4).barrier(soon());
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("has 4 members, others said 3"), std::string::npos)
      << status.message();
}

TEST(GroupTest, RefusesMoreBytesThanFitForEverybody) {
  auto server = server_without_listener();
  auto anna = client_of(*server);
  auto ben = client_of(*server);
  const std::string half(kMaxValueBytes / 2, 'v');
  std::thread other([&] {
    EXPECT_EQ(Group(*ben, "all", 1, 2).allgather(half, soon()).code(), Code::kInvalidArgument);
  });
  EXPECT_EQ(Group(*anna, "all", 0, 2).allgather(half, soon()).code(), Code::kInvalidArgument);
  other.join();
}

TEST(GroupTest, AMemberThatGoesIsNamedToThoseWhoWaitAndThoseWhoCome) {
  auto server = server_without_listener();
  auto anna = client_of(*server);
  auto ben = client_of(*server);
  auto cleo = client_of(*server);
  Group first(*anna, "all", 0, 3);
  Group second(*ben, "all", 1, 3);
  Group third(*cleo, "all", 2, 3);
  std::thread one([&] { EXPECT_TRUE(first.barrier(soon()).is_ok()); });
  std::thread two([&] { EXPECT_TRUE(second.barrier(soon()).is_ok()); });
  EXPECT_TRUE(third.barrier(soon()).is_ok());
  one.join();
  two.join();
  std::thread waiting([&] {
    const Status status = first.barrier(soon());
    EXPECT_EQ(status.code(), Code::kPeerLost);
    EXPECT_NE(status.message().find("rank 2 (a test) is gone"), std::string::npos)
        << status.message();
  });
  cleo.reset();
  waiting.join();
  EXPECT_EQ(second.barrier(soon()).code(), Code::kPeerLost);
  // Those who are left go on in another group, and are in step.
  Group left(*anna, "left", 0, 2);
  std::thread other([&] {
    Group also_left(*ben, "left", 1, 2);
    EXPECT_TRUE(also_left.barrier(soon()).is_ok());
  });
  EXPECT_TRUE(left.barrier(soon()).is_ok());
  other.join();
}

TEST(GroupTest, ReportsALostStore) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  Group group(*client, "all", 0, 2);
  server.reset();
  EXPECT_EQ(group.barrier(soon()).code(), Code::kStoreLost);
  EXPECT_EQ(group.allgather("", soon()).code(), Code::kStoreLost);
}

// From the moment that all came they know each other, also who never meets in the group.
TEST(GroupTest, AnAssemblyBecomesAGroup) {
  auto server = server_without_listener();
  auto anna = client_of(*server);
  auto ben = client_of(*server);
  std::string group;
  std::thread other([&] {
    auto assembly = ben->assemble("space", 1, 2, "b", soon());
    ASSERT_TRUE(assembly.is_ok()) << assembly.status().to_string();
    group = assembly->group;
  });
  auto assembly = anna->assemble("space", 0, 2, "a", soon());
  other.join();
  ASSERT_TRUE(assembly.is_ok()) << assembly.status().to_string();
  EXPECT_EQ(assembly->group, group);
  EXPECT_EQ(assembly->parts, (std::vector<std::string>{"a", "b"}));
  ben.reset();
  const Status status = Group(*anna, group, 0, 2).barrier(soon());
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_NE(status.message().find("rank 1 (a test) is gone"), std::string::npos)
      << status.message();
}

TEST(GroupTest, WhoComesGathersUnderAName) {
  auto server = server_without_listener();
  auto anna = client_of(*server);
  auto ben = client_of(*server);
  for (int round = 0; round < 3; ++round) {
    const bool is_odd = round % 2 == 1;  // they change places
    std::thread other([&] {
      EXPECT_EQ((*ben->gather("key", is_odd ? 0 : 1, 2, "b", soon()))[1], is_odd ? "a" : "b");
    });
    EXPECT_EQ((*anna->gather("key", is_odd ? 1 : 0, 2, "a", soon()))[1], is_odd ? "a" : "b");
    other.join();
  }
}

}  // namespace
}  // namespace memspan
