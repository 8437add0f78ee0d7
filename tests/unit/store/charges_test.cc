// SPDX-License-Identifier: Apache-2.0
#include "store/charges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace memspan {
namespace {

using testing::HasSubstr;

// Takes as much as it may, in steps.
std::size_t take_all(StoreCharges& charges, SessionId session, std::size_t step) {
  std::size_t taken = 0;
  for (; charges.check(session, step).is_ok(); taken += step) charges.add(session, step);
  return taken;
}

TEST(StoreChargesTest, OneSessionLeavesHalfOfTheCommonPartToTheOthers) {
  StoreCharges charges({"bytes", 800, 800, 10});
  EXPECT_EQ(take_all(charges, 1, 1), 300U);
  EXPECT_EQ(take_all(charges, 2, 1), 150U);
  charges.remove(1, 300);
  EXPECT_EQ(take_all(charges, 2, 1), 150U);
}

TEST(StoreChargesTest, SessionsThatGrowTogetherGetEqualShares) {
  StoreCharges charges({"bytes", 800, 800, 10});
  std::map<SessionId, std::size_t> held;
  for (bool has_grown = true; std::exchange(has_grown, false);)
    for (SessionId session = 1; session <= 5; ++session) {
      if (!charges.check(session, 1).is_ok()) continue;
      charges.add(session, 1);
      ++held[session];
      has_grown = true;
    }
  for (const auto& [session, amount] : held) EXPECT_EQ(amount, 100U) << session;
}

TEST(StoreChargesTest, NewSessionsFindTheirAssuredPartAfterAnyNumberOfLargeOnes) {
  StoreCharges charges({"bytes", 800, 800, 10});
  for (SessionId session = 1; session <= 8; ++session) take_all(charges, session, 1);
  const std::size_t left = 800 - charges.all();
  EXPECT_GE(left, 100U);
  for (SessionId session = 100; session < 100 + left / 10; ++session)
    EXPECT_EQ(take_all(charges, session, 1), 10U);
  EXPECT_EQ(charges.check(1000, 10).code(), Code::kOutOfMemory);
}

TEST(StoreChargesTest, ARefusalNamesTheQuantityAndTheLimits) {
  StoreCharges charges({"cups", 800, 100, 10});
  take_all(charges, 1, 1);
  charges.add(2, 50);
  EXPECT_THAT(charges.check(1, 7).message(),
              HasSubstr("(cups): this member has 100, wants 7 more and may have at most 100 now; "
                        "all members have 150 of at most 800"));
}

}  // namespace
}  // namespace memspan
