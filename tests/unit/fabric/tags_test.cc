// SPDX-License-Identifier: Apache-2.0
#include "fabric/tags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memspan {
namespace {

using testing::HasSubstr;

TEST(TagsTest, AllowsEqualTags) {
  auto rules = parse_tags("", "");
  ASSERT_TRUE(rules.is_ok());
  EXPECT_TRUE(rules->allows("", ""));
  EXPECT_TRUE(rules->allows("a", "a"));
  EXPECT_FALSE(rules->allows("a", ""));
}

TEST(TagsTest, AllowsWhatIsListedInEitherOrder) {
  auto rules = parse_tags("A_1", "a:HOST_TCP:b,b:DEVICE_MTE:c,c:HOST_URMA:c");
  ASSERT_TRUE(rules.is_ok()) << rules.status().to_string();
  EXPECT_EQ(rules->tag, "A_1");
  EXPECT_TRUE(rules->allows("a", "b"));
  EXPECT_TRUE(rules->allows("c", "b"));
  EXPECT_FALSE(rules->allows("a", "c"));
}

struct Bad {
  const char* tag;
  const char* ways;
  const char* why;
};
class BadTagsTest : public testing::TestWithParam<Bad> {};

TEST_P(BadTagsTest, SaysWhatIsWrong) {
  auto rules = parse_tags(GetParam().tag, GetParam().ways);
  ASSERT_EQ(rules.code(), Code::kInvalidArgument);
  EXPECT_THAT(rules.status().message(), HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(All, BadTagsTest,
                         testing::Values(Bad{"a-b", "", "tag \"a-b\""},
                                         Bad{"0123456789012345678901234567890", "", "1 to 30"},
                                         Bad{"", "a:HOST_TCP", "tagA:OP:tagB"},
                                         Bad{"", ",", "tagA:OP:tagB"},
                                         Bad{"", "a:HOST_TCP:b,c", "\"c\""},
                                         Bad{"", "a:TCP:b", "\"TCP\""},
                                         Bad{"", ":HOST_TCP:b", "tagOpInfo's \"\""},
                                         Bad{"", "a:HOST_TCP:b:c", "tagOpInfo's \"b:c\""}));

}  // namespace
}  // namespace memspan
