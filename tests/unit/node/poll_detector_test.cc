// SPDX-License-Identifier: Apache-2.0
#include "node/poll_detector.h"

#include <gtest/gtest.h>

#include <vector>

namespace memspan {
namespace {

constexpr int kYieldsPerDoubling = static_cast<int>(PollDetector::kYieldsPerDoubling);
constexpr int kRarest = 1 << PollDetector::kMostDoublings;
constexpr int kRarestOfFlags = 1 << PollDetector::kMostDoublingsOfFlags;

int yields_of(PollDetector& detector, const void* word, std::uint64_t value, int looks) {
  int yields = 0;
  for (int i = 0; i < looks; ++i) yields += detector.is_polling(word, value) ? 1 : 0;
  return yields;
}

TEST(PollDetectorTest, TheSameValueAgainIsPolling) {
  PollDetector detector;
  const std::uint64_t word = 0;
  EXPECT_EQ(yields_of(detector, &word, 7, 1), 0);
  EXPECT_EQ(yields_of(detector, &word, 7, kYieldsPerDoubling), kYieldsPerDoubling);
}

TEST(PollDetectorTest, ANewValueBeginsAnew) {
  PollDetector detector;
  const std::uint64_t word = 0;
  for (std::uint64_t value = 0; value < 1000; ++value)
    EXPECT_EQ(yields_of(detector, &word, value, 1), 0) << value;
}

TEST(PollDetectorTest, ZeroIsAValueAsAnyOther) {
  PollDetector detector;
  const std::uint64_t word = 0;
  EXPECT_EQ(yields_of(detector, &word, 0, 1), 0);
  EXPECT_EQ(yields_of(detector, &word, 0, 1), 1);
}

TEST(PollDetectorTest, AFewFlagsInTurnArePolling) {
  constexpr std::size_t kFlags = 8;
  constexpr int kInTurn = 32;
  for (const std::size_t apart : {1u, 16u, 512u, 8192u}) {
    PollDetector detector;
    const std::vector<std::uint64_t> words(kFlags * apart);
    int yields = 0;
    for (int turn = 0; turn < kInTurn; ++turn)
      for (std::size_t flag = 0; flag < kFlags; ++flag)
        yields += detector.is_polling(&words[flag * apart], 0) ? 1 : 0;
    EXPECT_GE(yields, kInTurn) << 8 * apart << " bytes from one to the next";
  }
}

TEST(PollDetectorTest, AWalkOverManyWordsIsNot) {
  PollDetector detector;
  const std::vector<std::uint64_t> words(4096);
  int yields = 0;
  for (int walk = 0; walk < 32; ++walk)
    for (const std::uint64_t& word : words) yields += detector.is_polling(&word, word) ? 1 : 0;
  EXPECT_EQ(yields, 0);
}

TEST(PollDetectorTest, AWordThatStaysTheSameIsYieldedForMoreAndMoreRarely) {
  PollDetector detector;
  const std::uint64_t word = 0;
  yields_of(detector, &word, 1, 1 + kYieldsPerDoubling);
  EXPECT_EQ(yields_of(detector, &word, 1, 2 * kYieldsPerDoubling), kYieldsPerDoubling);
  yields_of(detector, &word, 1, 2 * kYieldsPerDoubling * kRarest);
  EXPECT_EQ(yields_of(detector, &word, 1, 10 * kRarest), 10);  // and never less often than that
  EXPECT_EQ(yields_of(detector, &word, 2, 2), 1);              // a change makes it quick again
}

TEST(PollDetectorTest, AfterTwoLongYieldsForWhatNeverChangedTheNextOneIsLater) {
  PollDetector detector;
  const std::uint64_t word = 0;
  ASSERT_EQ(yields_of(detector, &word, 1, 2), 1);
  detector.note_long_yield();
  ASSERT_EQ(yields_of(detector, &word, 1, 1), 1);
  detector.note_long_yield();
  EXPECT_EQ(yields_of(detector, &word, 1, 1), 0);
  EXPECT_EQ(yields_of(detector, &word, 1, 1), 1);
}

TEST(PollDetectorTest, AfterLongYieldsForAFlagItIsNot) {
  PollDetector detector;
  const std::uint64_t word = 0;
  ASSERT_EQ(yields_of(detector, &word, 0, 1), 0);
  ASSERT_EQ(yields_of(detector, &word, 1, 2), 1);
  for (int i = 0; i < 2; ++i) {
    detector.note_long_yield();
    EXPECT_EQ(yields_of(detector, &word, 1, 1), 1);
  }
}

TEST(PollDetectorTest, AFlagIsNeverYieldedForVeryRarely) {
  PollDetector detector;
  const std::uint64_t word = 0;
  yields_of(detector, &word, 0, 1);
  yields_of(detector, &word, 1, 100 * kYieldsPerDoubling * kRarestOfFlags);
  EXPECT_EQ(yields_of(detector, &word, 1, 10 * kRarestOfFlags), 10);
}

}  // namespace
}  // namespace memspan
