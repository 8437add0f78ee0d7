// SPDX-License-Identifier: Apache-2.0
#include "core/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memspan {
namespace {

using testing::ElementsAre;

// What a member with `mine` is told when the others tell what `others` would.
template <typename Mine>
auto agree_with(const Mine& mine, const std::vector<Result<std::string>>& others) {
  const auto exchange = [&](const std::string& told) -> Result<std::vector<std::string>> {
    std::vector<std::string> all;
    for (const auto& other : others) {
      const auto note = [&](const std::string& text) -> Result<std::vector<std::string>> {
        all.push_back(text);
        return std::vector<std::string>{text};
      };
      static_cast<void>(agree(note, other, "PE"));
    }
    all.push_back(told);
    return all;
  };
  return agree(exchange, mine, "PE");
}

const Status kFull(Code::kOutOfMemory, "no room for 5 bytes");
const Status kGone(Code::kPeerLost, "it died");

TEST(AgreementTest, AllGetTheTextsOfAll) {
  const auto all = agree_with(Result<std::string>("mine"), {std::string("a b"), std::string()});
  ASSERT_TRUE(all.is_ok()) << all.status().to_string();
  EXPECT_THAT(*all, ElementsAre("a b", "", "mine"));
  EXPECT_TRUE(agree_with(Status::ok(), {std::string()}).is_ok());
}

TEST(AgreementTest, AllFailAsTheFirstThatFailed) {
  const auto all = agree_with(Result<std::string>("mine"), {std::string("a"), kFull, kGone});
  EXPECT_EQ(all.code(), Code::kOutOfMemory);
  EXPECT_EQ(all.status().message(), "PE 1: no room for 5 bytes");
}

TEST(AgreementTest, AMemberThatFailedIsToldTheFirstFailureToo) {
  EXPECT_EQ(agree_with(kGone, {kFull}).message(), "PE 0: no room for 5 bytes");
  EXPECT_EQ(agree_with(kGone, {std::string()}).message(), "PE 1: it died");
  const auto broken = [](const std::string&) -> Result<std::vector<std::string>> {
    return Status(Code::kStoreLost, "the store is gone");
  };
  EXPECT_EQ(agree(broken, kGone, "PE").code(), Code::kPeerLost);
  EXPECT_EQ(agree(broken, Status::ok(), "PE").code(), Code::kStoreLost);
}

TEST(AgreementTest, NonsenseIsAFailureOfWhoToldIt) {
  for (const char* told : {"", "x", "0", "99 what", "-1 what", "0x what"}) {
    const auto exchange = [&](const std::string&) -> Result<std::vector<std::string>> {
      return std::vector<std::string>{"0 fine", told};
    };
    const Status status = agree(exchange, Status::ok(), "rank");
    EXPECT_EQ(status.code(), Code::kInternal) << told;
    EXPECT_EQ(status.message(), "rank 1: what it says of itself is malformed");
  }
}

}  // namespace
}  // namespace memspan
