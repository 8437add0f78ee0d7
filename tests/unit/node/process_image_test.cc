// SPDX-License-Identifier: Apache-2.0
#include "node/process_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "world/membership.h"

namespace memspan {
namespace {

TEST(ProcessImageTest, WhoMapsTheBoardIsStillThere) {
  const NodeSegment segment = NodeSegment::create(1, 1 << 20, false).value();
  ASSERT_TRUE(claim_rank(segment, 0).is_ok());
  EXPECT_FALSE(has_replaced_program(segment, getpid()));
  EXPECT_FALSE(mark_replaced(segment, 0));
}

TEST(ProcessImageTest, WhoMapsAnotherOneIsNot) {
  const NodeSegment other = NodeSegment::create(1, 1 << 20, false).value();
  // A process that lives and never had it: what started this one.
  EXPECT_TRUE(has_replaced_program(other, getppid()));
  ASSERT_TRUE(claim_rank(other, 0).is_ok());
  other.peer(0).pid.store(getppid());
  EXPECT_TRUE(mark_replaced(other, 0));
  EXPECT_EQ(other.peer(0).wait_status.load(), kReplacedProgram);
}

TEST(ProcessImageTest, WhoHasEndedOrLeftIsNobodysLoss) {
  const NodeSegment segment = NodeSegment::create(1, 1 << 20, false).value();
  EXPECT_FALSE(has_replaced_program(segment, 0x3fffffff));
  segment.peer(0).pid.store(getppid());
  segment.peer(0).state.store(PeerState::kLeft);
  EXPECT_FALSE(mark_replaced(segment, 0));
}

}  // namespace
}  // namespace memspan
