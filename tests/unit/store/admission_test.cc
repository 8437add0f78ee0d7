// SPDX-License-Identifier: Apache-2.0
#include "store/admission.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace memspan {
namespace {

class StoreAdmissionTest : public testing::Test {
 protected:
  std::optional<SessionId> arrive(SessionId id, const std::string& address) {
    return admission_.accept(id, address, now_);
  }
  // Numbered from 1, one after the other.
  void fill(std::initializer_list<const char*> addresses) {
    SessionId id = 0;
    for (const char* address : addresses) EXPECT_EQ(arrive(++id, address), std::nullopt);
  }

  StoreAdmission admission_{{.per_address = 2, .in_all = 4, .handshake = std::chrono::seconds(1)}};
  Clock::time_point now_ = {};
};

TEST_F(StoreAdmissionTest, LetsWaitWhoHasRoom) {
  fill({"a", "a", "b", "c"});
}

TEST_F(StoreAdmissionTest, TheOldestSilentOneOfAFullAddressGoes) {
  fill({"b", "a", "a"});
  EXPECT_EQ(arrive(4, "a"), 2U);
  EXPECT_EQ(arrive(5, "a"), 3U);
  EXPECT_EQ(arrive(6, "b"), std::nullopt);
}

TEST_F(StoreAdmissionTest, TheOldestSilentOneOfAllGoesWhenAllIsFull) {
  fill({"a", "a", "b", "b"});
  EXPECT_EQ(arrive(5, "c"), 1U);
  EXPECT_EQ(arrive(6, "c"), 2U);
}

// One address must not drive others out.
TEST_F(StoreAdmissionTest, AFullAddressMakesRoomAmongItsOwnEvenWhenAllIsFull) {
  fill({"a", "b", "b", "c"});
  EXPECT_EQ(arrive(5, "b"), 2U);
}

TEST_F(StoreAdmissionTest, WhoHasSpokenStays) {
  fill({"a", "a"});
  admission_.note_activity(1);
  EXPECT_EQ(arrive(3, "a"), 2U);
  admission_.note_activity(3);
  EXPECT_EQ(arrive(4, "a"), 4U);
  // The new one was refused: it is not counted.
  admission_.note_activity(4);
  admission_.release(4);
  EXPECT_EQ(arrive(5, "b"), std::nullopt);
  EXPECT_EQ(arrive(6, "b"), std::nullopt);
}

TEST_F(StoreAdmissionTest, WhoLeavesMakesRoom) {
  fill({"a", "a"});
  admission_.release(1);
  admission_.release(1);
  admission_.release(77);
  EXPECT_EQ(arrive(3, "a"), std::nullopt);
  EXPECT_EQ(arrive(4, "a"), 2U);
}

TEST_F(StoreAdmissionTest, WhoSpokeKeepsItsPlaceForAHandshakeAndNoLonger) {
  fill({"a", "b", "c"});
  now_ += std::chrono::milliseconds(500);
  EXPECT_EQ(arrive(4, "d"), std::nullopt);
  for (SessionId id : {1, 2, 3, 4}) admission_.note_activity(id);
  EXPECT_EQ(arrive(9, "e"), 9U);
  now_ += std::chrono::milliseconds(501);
  EXPECT_EQ(arrive(10, "e"), 1U);
  EXPECT_EQ(arrive(11, "f"), 10U);  // silent
  admission_.note_activity(11);
  EXPECT_EQ(arrive(12, "g"), 2U);
  admission_.release(4);
  EXPECT_EQ(arrive(13, "h"), std::nullopt);
}

}  // namespace
}  // namespace memspan
