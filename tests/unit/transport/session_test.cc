// SPDX-License-Identifier: Apache-2.0
#include "transport/message/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memspan {
namespace {

using testing::HasSubstr;

constexpr SipKey kSecret{11, 12};

FrameHeader sealed(const Session& session, const Frame& frame, std::uint32_t sequence) {
  FrameHeader header;
  encode(frame, header);
  session.seal(header, sequence);
  return header;
}
Frame greeting(const Session& session) {
  return Hello{.peer = 3, .nonce = session.nonce()}.frame();
}
const Frame kAnswer{.type = FrameType::kFlushed, .tag = 9, .region = {}};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    EXPECT_EQ(owner_.open(sealed(requester_, greeting(requester_), 0), 0).value(),
              greeting(requester_));
  }
  Session requester_ = Session::connecting(kSecret);
  Session owner_ = Session::accepting(kSecret);
};

TEST_F(SessionTest, BothSidesReadEachOther) {
  const Frame put{.type = FrameType::kPut, .payload = 5, .region = {1, 2}, .offset = 8};
  EXPECT_EQ(owner_.open(sealed(requester_, put, 1), 1).value(), put);
  EXPECT_EQ(requester_.open(sealed(owner_, kAnswer, 0), 0).value(), kAnswer);
  EXPECT_EQ(owner_.nonce(), requester_.nonce());
}

TEST_F(SessionTest, AFrameThatIsChangedRepeatedOrOfTheOtherDirectionIsNone) {
  const Frame put{.type = FrameType::kPut, .region = {1, 2}};
  const FrameHeader good = sealed(requester_, put, 1);
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const std::byte bit : {std::byte{1}, std::byte{0x80}}) {
      FrameHeader bad = good;
      bad[at] ^= bit;
      EXPECT_EQ(owner_.open(bad, 1).code(), Code::kInvalidArgument) << at;
    }
  EXPECT_THAT(owner_.open(good, 2).status().message(), HasSubstr("frame 2 is not sealed"));
  EXPECT_FALSE(requester_.open(good, 1).is_ok());
  EXPECT_FALSE(owner_.open(sealed(owner_, kAnswer, 0), 0).is_ok());
}

TEST_F(SessionTest, AProofIsForOneConnectionAndOneSecret) {
  constexpr SipKey kOwn{21, 22};
  EXPECT_EQ(requester_.proof(kOwn), owner_.proof(kOwn));
  EXPECT_NE(requester_.proof(kOwn), requester_.proof(kSecret));
  EXPECT_NE(requester_.proof(kOwn), Session::connecting(kSecret).proof(kOwn));
}

TEST_F(SessionTest, TwoConnectionsHaveDifferentKeys) {
  Session other = Session::connecting(kSecret);
  EXPECT_NE(other.nonce(), requester_.nonce());
  EXPECT_FALSE(owner_.open(sealed(other, kAnswer, 1), 1).is_ok());
}

TEST(StrangeSessionTest, WhoDoesNotKnowTheSecretGetsAndGivesNothing) {
  Session stranger = Session::connecting({11, 13});
  Session owner = Session::accepting(kSecret);
  const auto opened = owner.open(sealed(stranger, greeting(stranger), 0), 0);
  EXPECT_EQ(opened.code(), Code::kAuth);
  EXPECT_THAT(opened.status().message(), HasSubstr("does not know the secret"));
  EXPECT_EQ(owner.open(sealed(stranger, kAnswer, 0), 0).code(), Code::kAuth);
  EXPECT_EQ(owner.nonce(), Nonce{});
  // What the owner says then, nobody has sealed.
  const Frame refusal{.type = FrameType::kRefused,
                      .kind = static_cast<std::uint8_t>(Refusal::kHello),
                      .flags = kWantsAnswer,
                      .payload = 3,
                      .region = {}};
  EXPECT_EQ(stranger.open(sealed(owner, refusal, 0), 0)->flags, 0);
  EXPECT_FALSE(stranger.open(sealed(owner, refusal, 1), 1).is_ok());
  EXPECT_FALSE(stranger.open(sealed(owner, kAnswer, 0), 0).is_ok());
}

}  // namespace
}  // namespace memspan
