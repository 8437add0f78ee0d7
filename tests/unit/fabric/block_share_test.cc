// SPDX-License-Identifier: Apache-2.0
#include "fabric/blocks/block_share.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

namespace memspan::blocks {
namespace {

constexpr std::uint64_t kShare = std::uint64_t{4} << 20;
constexpr std::uint64_t kEntry = 50'000;

Key key_of(std::uint64_t number) {
  return {{number, 7, 7, 7}};
}

// A share in memory that children of fork() have as well.
class BlockShareTest : public testing::Test {
 protected:
  void SetUp() override { make(1); }
  void TearDown() override {
    if (memory_ != nullptr) munmap(memory_, kShare);
  }
  void make(std::uint32_t sections) {
    if (memory_ != nullptr) munmap(memory_, kShare);
    memory_ = mmap(nullptr, kShare, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory_, MAP_FAILED);
    ASSERT_TRUE(BlockShare::format(memory_, kShare, sections).is_ok());
  }
  BlockShare share() { return *BlockShare::open(memory_, kShare); }
  bool put(std::uint64_t number, Room room = Room::kAny, std::uint64_t bytes = kEntry) {
    auto claimed = share().claim(key_of(number), bytes, room, evicted_);
    if (!claimed) return false;
    std::memset(claimed->data, static_cast<int>(number), bytes);
    share().publish(*claimed);
    return true;
  }
  bool has(std::uint64_t number) {
    const auto seen = share().find(key_of(number));
    return seen && seen->word.state() == State::kReady &&
           seen->data[seen->bytes - 1] == static_cast<std::byte>(number);
  }
  // Fills it with entries 0, 1, ...: how many there are.
  std::uint64_t fill(std::uint64_t bytes = kEntry) {
    std::uint64_t count = 0;
    while (put(count, Room::kUntouched, bytes)) ++count;
    return count;
  }
  template <typename Action>
  void in_child(Action action) {
    const pid_t child = fork();
    if (child == 0) {
      action();
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }

  void* memory_ = nullptr;
  std::uint64_t evicted_ = 0;
};

TEST_F(BlockShareTest, RefusesSizesThatCannotBe) {
  EXPECT_EQ(BlockShare::format(memory_, BlockShare::kLeastShare - 1, 1).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(BlockShare::format(memory_, kShare, kMostSections).code(), Code::kInvalidArgument);
  EXPECT_FALSE(BlockShare::open(memory_, kShare - 1).has_value());
  std::vector<std::byte> zeros(kShare);
  EXPECT_FALSE(BlockShare::open(zeros.data(), kShare).has_value());
}

TEST_F(BlockShareTest, KeepsAllEntriesUntilItIsFull) {
  const std::uint64_t count = fill();
  EXPECT_GE(count * kEntry, kShare * 8 / 10);
  for (std::uint64_t i = 0; i < count; ++i) EXPECT_TRUE(has(i)) << i;
  EXPECT_FALSE(has(count));
  EXPECT_EQ(share().use().entries, count);
  EXPECT_EQ(share().use().bytes, count * kEntry);
  EXPECT_EQ(evicted_, 0);
}

TEST_F(BlockShareTest, EvictsWhatIsNotUsedAgain) {
  const std::uint64_t count = fill();
  ASSERT_TRUE(put(count));  // takes all marks away
  EXPECT_EQ(evicted_, 1);
  std::vector<std::uint64_t> used;
  for (std::uint64_t i = count / 2; i < count / 2 + 10; ++i) {
    ASSERT_TRUE(has(i));
    BlockShare::touch(*share().find(key_of(i)));
    used.push_back(i);
  }
  for (std::uint64_t i = 1; i + 10 < count; ++i) ASSERT_TRUE(put(count + i));
  for (const std::uint64_t i : used) EXPECT_TRUE(has(i)) << i;
  EXPECT_FALSE(has(1));
  EXPECT_EQ(evicted_, count - 10);
}

TEST_F(BlockShareTest, NeverEvictsWhatIsBeingRead) {
  const std::uint64_t count = fill();
  const auto seen = *share().find(key_of(3));
  const auto place = share().begin_read(seen);
  ASSERT_TRUE(place.has_value());
  for (std::uint64_t i = 0; i < 4 * count; ++i) ASSERT_TRUE(put(count + i));
  EXPECT_TRUE(has(3));
  EXPECT_FALSE(share().remove(key_of(3)));
  EXPECT_TRUE(share().end_read(seen, *place));
  for (std::uint64_t i = 0; i < 3 * count; ++i) ASSERT_TRUE(put(10'000 + i));
  EXPECT_FALSE(has(3));
}

TEST_F(BlockShareTest, AReadWithoutAPlaceNoticesAnEviction) {
  const std::uint64_t count = fill();
  const auto seen = *share().find(key_of(3));
  std::vector<std::uint32_t> places;
  for (std::uint32_t i = 0; i < kReaders; ++i) places.push_back(*share().begin_read(seen));
  const auto without = share().begin_read(seen);
  ASSERT_EQ(without, kReaders);
  EXPECT_TRUE(share().end_read(seen, *without));
  for (const std::uint32_t place : places) EXPECT_TRUE(share().end_read(seen, place));
  for (std::uint64_t i = 0; i < 3 * count; ++i) ASSERT_TRUE(put(count + i));
  EXPECT_FALSE(share().end_read(seen, kReaders));
  EXPECT_FALSE(share().begin_read(seen).has_value());
}

TEST_F(BlockShareTest, IsFullWhenAllIsInUse) {
  std::vector<Seen> claimed;
  while (auto seen = share().claim(key_of(claimed.size()), kEntry, Room::kAny, evicted_))
    claimed.push_back(*seen);
  EXPECT_EQ(claimed.size(), share().use().slots);
  EXPECT_EQ(share().find(key_of(0))->word.state(), State::kClaimed);
  share().abandon(claimed.front());
  EXPECT_FALSE(share().find(key_of(0)).has_value());
  EXPECT_TRUE(put(9'999));
}

TEST_F(BlockShareTest, TakesBackWhatDeadProcessesHad) {
  const std::uint64_t slots = fill();
  in_child([&] {
    // Claims half of it, and reads some of the rest.
    for (std::uint64_t i = 0; i < slots / 2; ++i)
      if (!share().claim(key_of(5'000 + i), kEntry, Room::kAny, evicted_)) _exit(1);
    for (std::uint64_t i = 0; i < slots; ++i)
      if (const auto seen = share().find(key_of(i)); seen && !share().begin_read(*seen)) _exit(2);
  });
  EXPECT_FALSE(share().find(key_of(5'000)).has_value());
  for (std::uint64_t i = 0; i < slots; ++i) ASSERT_TRUE(put(7'000 + i));
  for (std::uint64_t i = 0; i < slots; ++i) EXPECT_TRUE(has(7'000 + i)) << i;
}

TEST_F(BlockShareTest, HasClassesOfSizesSideBySide) {
  make(4);
  for (const std::uint64_t bytes : {20'000U, 100'000U, 300'000U})
    ASSERT_TRUE(put(bytes, Room::kUntouched, bytes));
  for (const std::uint64_t bytes : {20'000U, 100'000U, 300'000U}) EXPECT_TRUE(has(bytes));
  EXPECT_EQ(share().use().sections, 3);
  EXPECT_FALSE(put(1, Room::kAny, kShare));
}

TEST_F(BlockShareTest, ASectionOfACrowdedClassGoesToANewOne) {
  make(4);
  const std::uint64_t count = fill(20'000);
  ASSERT_EQ(share().use().sections, 4);
  ASSERT_TRUE(put(9'999, Room::kAny, 200'000));
  EXPECT_TRUE(has(9'999));
  EXPECT_GE(evicted_, count / 5);
  std::uint64_t left = 0;
  for (std::uint64_t i = 0; i < count; ++i) left += has(i) ? 1 : 0;
  EXPECT_EQ(left, count - evicted_);
  // Back again, and whatever is found is right.
  for (std::uint64_t i = 0; i < 2 * count; ++i) ASSERT_TRUE(put(20'000 + i, Room::kAny, 20'000));
  EXPECT_TRUE(has(9'999));
}

TEST_F(BlockShareTest, ASectionInUseIsNotGivenAway) {
  make(2);
  const std::uint64_t count = fill(20'000);
  std::vector<std::pair<Seen, std::uint32_t>> readers;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto seen = *share().find(key_of(i));
    readers.emplace_back(seen, *share().begin_read(seen));
  }
  EXPECT_FALSE(put(9'999, Room::kAny, 200'000));
  for (const auto& [seen, place] : readers) EXPECT_TRUE(share().end_read(seen, place));
  for (std::uint64_t i = 0; i < count; ++i) EXPECT_TRUE(has(i)) << i;
}

TEST_F(BlockShareTest, ThreadsPutAndReadAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> wrong{0}, right{0};
  for (std::uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      std::uint64_t evicted = 0, random = thread + 1;
      for (std::uint64_t i = 0; i < 3'000; ++i) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        const std::uint64_t number = (random >> 33) % 120;
        if (const auto seen = share().find(key_of(number));
            seen && seen->word.state() == State::kReady) {
          const auto place = share().begin_read(*seen);
          if (!place) continue;
          const bool is_right = seen->data[0] == static_cast<std::byte>(number) &&
                                seen->data[seen->bytes - 1] == static_cast<std::byte>(number);
          if (share().end_read(*seen, *place)) (is_right ? right : wrong).fetch_add(1);
        } else if (auto claimed = share().claim(key_of(number), kEntry, Room::kAny, evicted)) {
          std::memset(claimed->data, static_cast<int>(number), kEntry);
          share().publish(*claimed);
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_GT(right.load(), 1'000);
}

}  // namespace
}  // namespace memspan::blocks
