// SPDX-License-Identifier: Apache-2.0
#include "store/doorkeeper.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

class StoreDoorkeeperTest : public testing::Test {
 protected:
  StoreDoorkeeper door_{{.per_address = 2, .in_all = 4}};
};

TEST_F(StoreDoorkeeperTest, LetsWaitWhoHasRoom) {
  EXPECT_EQ(door_.arrive(1, "a"), std::nullopt);
  EXPECT_EQ(door_.arrive(2, "a"), std::nullopt);
  EXPECT_EQ(door_.arrive(3, "b"), std::nullopt);
  EXPECT_EQ(door_.arrive(4, "c"), std::nullopt);
}

TEST_F(StoreDoorkeeperTest, TheOldestSilentOneOfAFullAddressGoes) {
  door_.arrive(1, "b");
  door_.arrive(2, "a");
  door_.arrive(3, "a");
  EXPECT_EQ(door_.arrive(4, "a"), 2U);
  EXPECT_EQ(door_.arrive(5, "a"), 3U);
  EXPECT_EQ(door_.arrive(6, "b"), std::nullopt);
}

TEST_F(StoreDoorkeeperTest, TheOldestSilentOneOfAllGoesWhenAllIsFull) {
  door_.arrive(1, "a");
  door_.arrive(2, "a");
  door_.arrive(3, "b");
  door_.arrive(4, "b");
  EXPECT_EQ(door_.arrive(5, "c"), 1U);
  EXPECT_EQ(door_.arrive(6, "c"), 2U);
}

// One address must not drive others out.
TEST_F(StoreDoorkeeperTest, AFullAddressMakesRoomAmongItsOwnEvenWhenAllIsFull) {
  door_.arrive(1, "a");
  door_.arrive(2, "b");
  door_.arrive(3, "b");
  door_.arrive(4, "c");
  EXPECT_EQ(door_.arrive(5, "b"), 2U);
}

TEST_F(StoreDoorkeeperTest, WhoHasSpokenStays) {
  door_.arrive(1, "a");
  door_.arrive(2, "a");
  door_.speak(1);
  EXPECT_EQ(door_.arrive(3, "a"), 2U);
  door_.speak(3);
  EXPECT_EQ(door_.arrive(4, "a"), 4U);
  // The new one was not let to the door: it counts nowhere.
  door_.speak(4);
  door_.leave(4);
  EXPECT_EQ(door_.arrive(5, "b"), std::nullopt);
  EXPECT_EQ(door_.arrive(6, "b"), std::nullopt);
}

TEST_F(StoreDoorkeeperTest, WhoLeavesMakesRoom) {
  door_.arrive(1, "a");
  door_.arrive(2, "a");
  door_.leave(1);
  door_.leave(1);
  door_.leave(77);
  EXPECT_EQ(door_.arrive(3, "a"), std::nullopt);
  EXPECT_EQ(door_.arrive(4, "a"), 2U);
}

TEST_F(StoreDoorkeeperTest, AllWhoSpokeKeepEveryNewOneOut) {
  SessionId id = 0;
  for (const char* address : {"a", "b", "c", "d"}) {
    door_.arrive(++id, address);
    door_.speak(id);
  }
  EXPECT_EQ(door_.arrive(9, "e"), 9U);
  door_.leave(2);
  EXPECT_EQ(door_.arrive(10, "e"), std::nullopt);
}

}  // namespace
}  // namespace memspan
