// SPDX-License-Identifier: Apache-2.0
#include "memory/symmetric_heap.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "device/reservation.h"

namespace memspan {
namespace {

constexpr std::size_t kBytes = 8 << 20;
constexpr std::size_t kOffset = 1 << 20;

class SymmetricHeapTest : public testing::Test {
 protected:
  SymmetricHeapTest()
      : pages_(Pages::create(kOffset + kBytes, "test").value()),
        range_(Reservation::make(kBytes, nullptr).value()),
        heap_(pages_, kOffset, range_.base(), kBytes) {
    EXPECT_TRUE(range_.map(0, pages_, kOffset, kBytes).is_ok());
  }
  Pages pages_;
  Reservation range_;
  SymmetricHeap heap_;
};

TEST_F(SymmetricHeapTest, CommitsABlockOnce) {
  std::byte* block = heap_.allocate(100'000, 16);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(heap_.uncommitted(block, 100'000), 2u << 16);
  ASSERT_TRUE(heap_.commit(block, 100'000).is_ok());
  EXPECT_EQ(heap_.uncommitted(block, 100'000), 0u);
  EXPECT_TRUE(heap_.free(block));
  EXPECT_EQ(heap_.uncommitted(heap_.allocate(200'000, 16), 200'000), 2u << 16);
}

TEST_F(SymmetricHeapTest, MemoryThatIsTakenAtTouchIsNotCommitted) {
  SymmetricHeap heap(pages_, kOffset, range_.base(), kBytes, CommitMode::kAtTouch);
  EXPECT_EQ(heap.uncommitted(heap.allocate(100'000, 16), 100'000), 0u);
}

// Where huge pages fit, a block takes the memory of its chunks, as small pages would, and what is
// allocated later takes what lies between.
TEST(AlignedSymmetricHeapTest, HugePagesTakeNoMoreThanTheBlocks) {
  constexpr std::size_t kAll = 16 * kHugePage;
  const Pages pages = Pages::create(kAll, "test").value();
  Reservation range = Reservation::make(kAll, nullptr).value();
  ASSERT_TRUE(range.map(0, pages, 0, kAll).is_ok());
  SymmetricHeap heap(pages, 0, range.base(), kAll);
  const auto taken = [&] {
    struct stat info {};
    EXPECT_EQ(fstat(pages.descriptor(), &info), 0);
    return static_cast<std::size_t>(info.st_blocks) * 512;
  };
  std::size_t expected = 0;
  for (const std::size_t bytes : {100'000u, 5u << 20, 3'000'000u, 8u << 20}) {
    std::byte* const block = heap.allocate(bytes, 16);
    ASSERT_NE(block, nullptr);
    expected += heap.uncommitted(block, bytes);
    ASSERT_TRUE(heap.commit(block, bytes).is_ok());
    EXPECT_EQ(taken(), expected) << bytes;
    EXPECT_EQ(heap.uncommitted(block, bytes), 0u);
    block[0] = block[bytes - 1] = std::byte{1};
    EXPECT_EQ(taken(), expected) << bytes;
  }
}

TEST_F(SymmetricHeapTest, CommitsTheLastPages) {
  std::byte* block = heap_.allocate(kBytes, 16);
  ASSERT_EQ(block, heap_.base());
  EXPECT_TRUE(heap_.commit(block, kBytes).is_ok());
  block[kBytes - 1] = std::byte{1};
}

TEST_F(SymmetricHeapTest, KnowsItsOwnPointersFromOthers) {
  std::byte* block = heap_.allocate(64, 16);
  int elsewhere = 0;
  EXPECT_EQ(heap_.size_of(block), 64u);
  EXPECT_EQ(heap_.size_of(block + 16), std::nullopt);
  EXPECT_EQ(heap_.size_of(&elsewhere), std::nullopt);
  EXPECT_FALSE(heap_.free(&elsewhere));
  EXPECT_FALSE(heap_.free(nullptr));
  EXPECT_FALSE(heap_.free(block + 16));
  EXPECT_TRUE(heap_.free(block));
}

}  // namespace
}  // namespace memspan
