// SPDX-License-Identifier: Apache-2.0
#include "transport/message/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memspan {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class HeartbeatTest : public testing::Test {
 protected:
  HeartbeatTest() { heartbeat_.begin(now_); }
  // The look that is due after `time`.
  Status look(milliseconds time, std::uint64_t received) {
    now_ += time;
    return heartbeat_.look(now_, received);
  }
  static constexpr milliseconds kInterval{100};
  Clock::time_point now_ = Clock::now();
  Heartbeat heartbeat_{milliseconds(500)};
};

TEST_F(HeartbeatTest, WhoSendsLives) {
  for (std::uint64_t i = 1; i <= 50; ++i) EXPECT_TRUE(look(kInterval, 64 * i).is_ok());
}

TEST_F(HeartbeatTest, WhoIsSilentIsLostAtTheLimit) {
  EXPECT_TRUE(look(kInterval, 64).is_ok());
  for (int i = 1; i <= 4; ++i) EXPECT_TRUE(look(kInterval, 64).is_ok()) << i;
  const Status silent = look(kInterval, 64);
  EXPECT_EQ(silent.code(), Code::kPeerLost);
  EXPECT_THAT(silent.message(), HasSubstr("it has been silent for 0.5 s"));
}

TEST_F(HeartbeatTest, APauseBelowTheLimitIsNothing) {
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(look(kInterval, 64).is_ok());
    EXPECT_TRUE(look(kInterval, 128 + static_cast<std::uint64_t>(round)).is_ok());
    EXPECT_TRUE(look(kInterval, 64).is_ok());
  }
}

TEST_F(HeartbeatTest, WhoStoodStillHimselfBlamesNobody) {
  EXPECT_TRUE(look(kInterval, 64).is_ok());
  EXPECT_TRUE(look(milliseconds(5000), 64).is_ok());
  for (int i = 1; i <= 4; ++i) EXPECT_TRUE(look(kInterval, 64).is_ok()) << i;
  EXPECT_FALSE(look(kInterval, 64).is_ok());
}

TEST_F(HeartbeatTest, IsDueOnceInAnInterval) {
  EXPECT_FALSE(heartbeat_.is_due(now_));
  EXPECT_FALSE(heartbeat_.is_due(now_ + kInterval / 2));
  EXPECT_TRUE(heartbeat_.is_due(now_ + kInterval));
  EXPECT_EQ(heartbeat_.next(), now_ + kInterval);
  EXPECT_FALSE(Heartbeat(milliseconds(500)).is_due(now_ + kInterval)) << "it has not begun";
}

}  // namespace
}  // namespace memspan
