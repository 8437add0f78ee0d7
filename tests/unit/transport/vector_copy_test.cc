// SPDX-License-Identifier: Apache-2.0
// The other process is this one.
#include "transport/cma/vector_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace memspan {
namespace {

using testing::HasSubstr;

void add(VectorCopy& copy, std::byte* local, const std::byte* remote, std::size_t bytes) {
  copy.add(local, reinterpret_cast<std::uint64_t>(remote), bytes);
}

TEST(VectorCopyTest, MovesAndIsEmptyAgain) {
  std::vector<std::byte> local(100, std::byte{1}), remote(100, std::byte{2});
  VectorCopy copy(getpid(), MoveDirection::kPut);
  add(copy, &local[10], &remote[50], 5);
  add(copy, &local[90], &remote[0], 10);
  ASSERT_TRUE(copy.flush().is_ok());
  EXPECT_TRUE(copy.is_empty());
  EXPECT_EQ(copy.moved(), 15u);
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_EQ(remote[i] == std::byte{1}, i < 10 || (i >= 50 && i < 55)) << i;
}

// Each end by itself: bytes that follow each other there need no entry of their own.
TEST(VectorCopyTest, JoinsWhatContinuesTheOneBefore) {
  std::vector<std::byte> local(8192), remote(8192);
  VectorCopy copy(getpid(), MoveDirection::kGet);
  for (std::size_t i = 0; i < 4096; ++i) {
    ASSERT_FALSE(copy.is_full()) << i;
    add(copy, &local[i], &remote[i], 1);
  }
  ASSERT_TRUE(copy.flush().is_ok());
  std::size_t fitted = 0;
  for (; !copy.is_full(); ++fitted) add(copy, &local[fitted], &remote[2 * fitted], 1);
  EXPECT_EQ(fitted, VectorCopy::kMost);
}

TEST(VectorCopyTest, SaysHowMuchWasMovedBeforeAHole) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* mapped = static_cast<std::byte*>(
      mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(munmap(mapped + page, page), 0);
  std::vector<std::byte> local(3 * page);
  VectorCopy copy(getpid(), MoveDirection::kGet);
  add(copy, &local[0], mapped, 10);
  add(copy, &local[100], mapped + page - 20, 40);
  add(copy, &local[1000], mapped + 2 * page, 10);
  const Status status = copy.flush();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("of process"));
  EXPECT_EQ(copy.moved(), 30u);
  EXPECT_TRUE(copy.is_empty());
  add(copy, mapped + page, mapped, 10);
  EXPECT_THAT(copy.flush().message(), HasSubstr("of this process"));
  munmap(mapped, page);
  munmap(mapped + 2 * page, page);
}

TEST(VectorCopyTest, SaysWhoIsGoneOrOutOfReach) {
  std::byte byte{};
  VectorCopy gone(0x7fffffff, MoveDirection::kGet);
  add(gone, &byte, &byte, 1);
  EXPECT_EQ(gone.flush().code(), Code::kPeerLost);
  VectorCopy elsewhere(-1, MoveDirection::kGet);
  add(elsewhere, &byte, &byte, 1);
  EXPECT_EQ(elsewhere.flush().code(), Code::kNotSupported);
}

}  // namespace
}  // namespace memspan
