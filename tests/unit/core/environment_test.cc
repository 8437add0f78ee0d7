// SPDX-License-Identifier: Apache-2.0
#include "core/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace memspan {
namespace {

using testing::HasSubstr;

TEST(ParseSizeTest, ReadsEverySuffixOfEitherCase) {
  EXPECT_EQ(parse_size("x", "512").value(), 512u);
  EXPECT_EQ(parse_size("x", "1k").value(), 1024u);
  EXPECT_EQ(parse_size("x", "3M").value(), 3u << 20);
  EXPECT_EQ(parse_size("x", "2g").value(), std::size_t{2} << 30);
  EXPECT_EQ(parse_size("x", "1T").value(), std::size_t{1} << 40);
}

TEST(ParseSizeTest, ReadsFractionsAndRoundsUp) {
  EXPECT_EQ(parse_size("x", ".5m").value(), 512u << 10);
  EXPECT_EQ(parse_size("x", "1.5k").value(), 1536u);
  EXPECT_EQ(parse_size("x", "0.3").value(), 1u);
}

TEST(ParseSizeTest, ReadsUnitsThatSayBytes) {
  EXPECT_EQ(parse_size("x", "4MiB").value(), 4u << 20);
  EXPECT_EQ(parse_size("x", "4mb").value(), 4u << 20);
}

TEST(ParseSizeTest, RefusesEverythingElseWithTheNameAndTheValue) {
  for (const char* text : {"", "0", "-1", "m", "1x", "nan", "inf", "1e300", " 5", "99999999t",
                           "1gXYZ", "1gib ", "1mi", "1kk", "5b"}) {
    auto size = parse_size("SHMEM_SYMMETRIC_SIZE", text);
    ASSERT_EQ(size.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(size.status().message(),
                HasSubstr(std::string("SHMEM_SYMMETRIC_SIZE is \"") + text + "\""));
  }
}

TEST(ParseIntegerTest, RefusesWhatIsOutsideOrNotWhole) {
  EXPECT_EQ(parse_integer("n", "7", 0, 7).value(), 7);
  for (const char* text : {"8", "-1", "", "7 ", "0x3", "3.0"})
    EXPECT_EQ(parse_integer("n", text, 0, 7).code(), Code::kInvalidArgument) << text;
}

TEST(ParseTimeTest, ReadsAWholeNumberWithItsUnit) {
  EXPECT_EQ(parse_time("t", "20us").value(), std::chrono::microseconds(20));
  EXPECT_EQ(parse_time("t", "500ms").value(), std::chrono::milliseconds(500));
  EXPECT_EQ(parse_time("t", "3600s").value(), std::chrono::hours(1));
  for (const char* text : {"", "s", "5", "1.5s", "-1s", "5 s", "5sec", "3601s", "3600000001us"}) {
    const auto refused = parse_time("t", text);
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << text;
    EXPECT_NE(refused.status().message().find("t is \"" + std::string(text) + "\""),
              std::string::npos);
  }
}

TEST(EnvironmentTest, TellsUnsetFromEmpty) {
  ASSERT_EQ(unsetenv("MEMSPAN_TEST_VARIABLE"), 0);
  EXPECT_EQ(environment("MEMSPAN_TEST_VARIABLE"), std::nullopt);
  EXPECT_EQ(environment_integer("MEMSPAN_TEST_VARIABLE", 0, 9).value(), std::nullopt);
  ASSERT_EQ(setenv("MEMSPAN_TEST_VARIABLE", "", 1), 0);
  EXPECT_EQ(environment("MEMSPAN_TEST_VARIABLE"), "");
  EXPECT_EQ(environment_integer("MEMSPAN_TEST_VARIABLE", 0, 9).code(), Code::kInvalidArgument);
}

TEST(EnvironmentTest, NamesTheSuccessorOfARemovedVariable) {
  EXPECT_TRUE(removed_variables().empty());
  ASSERT_EQ(setenv("MEMSPAN_POPULATE", "all", 1), 0);
  EXPECT_THAT(removed_variables(),
              testing::ElementsAre(
                  "MEMSPAN_POPULATE has no effect any more: set MEMSPAN_COMMIT=allocation"));
  ASSERT_EQ(unsetenv("MEMSPAN_POPULATE"), 0);
}

TEST(FormatSizeTest, PicksTheUnit) {
  EXPECT_EQ(format_size(512), "512 B");
  EXPECT_EQ(format_size(2048), "2 KiB");
  EXPECT_EQ(format_size(std::uint64_t{3} << 29), "1.50 GiB");
}

}  // namespace
}  // namespace memspan
