// SPDX-License-Identifier: Apache-2.0
#include "memory/promised_memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/clock.h"
#include "device/reservation.h"
#include "memory/budget.h"
#include "memory/symmetric_heap.h"

namespace memspan {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(PlentifulTest, NeedsTwiceThePromisesAndAGibibyte) {
  EXPECT_TRUE(is_plentiful(kGiB, 0));
  EXPECT_TRUE(is_plentiful(9 * kGiB, 4 * kGiB));
  EXPECT_FALSE(is_plentiful(9 * kGiB - 1, 4 * kGiB));
  EXPECT_FALSE(is_plentiful(0, 0));
}

TEST(PlentifulTest, LooksSoonerTheLessThereIs) {
  using std::chrono::milliseconds;
  EXPECT_EQ(plentiful_for(0, kGiB), milliseconds(5));
  EXPECT_EQ(plentiful_for(3 * kGiB, kGiB), milliseconds(5));
  const Duration at_six_more = plentiful_for(9 * kGiB, kGiB);
  EXPECT_GT(at_six_more, milliseconds(150));
  EXPECT_LT(at_six_more, milliseconds(250));
  EXPECT_EQ(plentiful_for(1000 * kGiB, kGiB), milliseconds(1000));
}

// A heap whose only process this is.
class PromisedMemoryTest : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = std::size_t{128} << 20;
  static constexpr std::size_t kBlock = std::size_t{96} << 20;
  PromisedMemoryTest()
      : pages_(Pages::create(kBytes, "test").value()),
        range_(Reservation::make(kBytes, nullptr).value()) {
    EXPECT_TRUE(range_.map(0, pages_, 0, kBytes).is_ok());
  }
  ~PromisedMemoryTest() override { unsetenv("MEMSPAN_MEMORY_LIMIT"); }
  SymmetricHeap heap() { return {pages_, 0, range_.base(), kBytes, CommitMode::kPromised}; }
  std::size_t resident() const {
    struct stat info {};
    EXPECT_EQ(fstat(pages_.descriptor(), &info), 0);
    return static_cast<std::size_t>(info.st_blocks) * 512;
  }
  static constexpr char kTooLittle[] = "this host has too little memory to promise any";
  static bool has_plenty() {
    return is_plentiful(measure_memory_budget().value().available, 2 * kBlock);
  }
  // The thread publishes what it has done.
  static void await_promised(const SymmetricHeap& heap, std::uint64_t most) {
    const Deadline limit = Deadline::after(std::chrono::seconds(20));
    while (heap.promised() > most && !limit.has_passed()) std::this_thread::yield();
    EXPECT_LE(heap.promised(), most);
  }
  Pages pages_;
  Reservation range_;
};

TEST_F(PromisedMemoryTest, OnlyLargeBlocksAreWorthAPromise) {
  SymmetricHeap promising = heap();
  EXPECT_TRUE(promising.may_promise(kThreadedCommitBytes));
  EXPECT_FALSE(promising.may_promise(kThreadedCommitBytes - 1));
  EXPECT_FALSE(SymmetricHeap(pages_, 0, range_.base(), kBytes).may_promise(kBlock));
}

TEST_F(PromisedMemoryTest, APromiseTakesNothingAndCountsOnce) {
  if (!has_plenty()) GTEST_SKIP() << kTooLittle;
  SymmetricHeap promising = heap();
  std::byte* const block = promising.allocate(kBlock, 16);
  ASSERT_TRUE(promising.promise(block, kBlock).is_ok());
  EXPECT_EQ(promising.promised(), kBlock);
  EXPECT_EQ(resident(), 0u);
  EXPECT_EQ(promising.uncommitted(block, kBlock), 0u);
  ASSERT_TRUE(promising.promise(block, kBlock).is_ok());
  EXPECT_EQ(promising.promised(), kBlock);
}

TEST_F(PromisedMemoryTest, ShortMemoryIsTakenAtOnce) {
  setenv("MEMSPAN_MEMORY_LIMIT", "1m", 1);
  SymmetricHeap promising = heap();
  ASSERT_TRUE(promising.promise(promising.allocate(kBlock, 16), kBlock).is_ok());
  await_promised(promising, 0);
  EXPECT_EQ(resident(), kBlock);
}

TEST_F(PromisedMemoryTest, TouchedMemoryIsNotPromisedAnyMoreAndLittleIsMadeAhead) {
  if (!has_plenty()) GTEST_SKIP() << kTooLittle;
  SymmetricHeap promising = heap();
  std::byte* const block = promising.allocate(kBlock, 16);
  ASSERT_TRUE(promising.promise(block, kBlock).is_ok());
  const std::size_t touched = kBlock / 4;
  std::memset(block, 1, touched);
  await_promised(promising, kBlock - touched + PromisedMemory::kTouchedSign);
  EXPECT_GE(resident(), touched);
  EXPECT_LE(resident(), touched + touched / 8 + 2 * kHugePage);
  std::memset(block, 1, kBlock);
  await_promised(promising, 0);
  EXPECT_EQ(resident(), kBlock);
}

TEST_F(PromisedMemoryTest, OthersTouchesAreKept) {
  SymmetricHeap promising = heap();
  std::byte* const block = promising.allocate(kBlock, 16);
  ASSERT_TRUE(promising.promise(block, kBlock).is_ok());
  for (std::size_t at = 0; at < kBlock; at += 4096) block[at + at / 4096 % 4096] = std::byte{7};
  for (std::size_t at = 0; at < kBlock; at += 4096)
    ASSERT_EQ(block[at + at / 4096 % 4096], std::byte{7}) << at;
}

TEST_F(PromisedMemoryTest, PromisesThatTheCallerKeepsAreForgotten) {
  SymmetricHeap promising = heap();
  ASSERT_TRUE(promising.promise(promising.allocate(kBlock, 16), kBlock).is_ok());
  ASSERT_TRUE(promising.take_promised(0).is_ok());
  EXPECT_EQ(resident(), kBlock);
  promising.forget_promised();
  EXPECT_EQ(promising.promised(), 0u);
  ASSERT_TRUE(promising.take_promised(0).is_ok());
  EXPECT_EQ(resident(), kBlock);
}

TEST_F(PromisedMemoryTest, IsClaimed) {
  if (!has_plenty()) GTEST_SKIP() << kTooLittle;
  SymmetricHeap promising = heap();
  ASSERT_TRUE(promising.promise(promising.allocate(kBlock, 16), kBlock).is_ok());
  EXPECT_GE(claimed_on("/proc/meminfo"), kBlock);
}

}  // namespace
}  // namespace memspan
