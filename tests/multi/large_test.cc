// SPDX-License-Identifier: Apache-2.0
// More than 2^31 bytes and elements in one call, with a length that is no multiple of anything;
// every byte is looked at.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "job.h"
#include "support/needs.h"

namespace memspan::multi {
namespace {

constexpr std::size_t kTwoGiB = std::size_t{1} << 31;
constexpr std::size_t kBytes = kTwoGiB + 4099;

// A value that depends on the place and the seed, not equal 256, 65536 or 2^31 bytes further on.
unsigned char value_at(std::size_t i, int seed) {
  const std::uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15u;
  return static_cast<unsigned char>((mixed >> 56) + 37 * static_cast<std::uint64_t>(seed));
}

void fill(unsigned char* to, std::size_t bytes, int seed) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = value_at(i, seed);
}

// How many of [0, bytes) differ from what fill() wrote at the same distance from the start.
std::size_t differences(const unsigned char* from, std::size_t bytes, int seed) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < bytes; ++i) count += from[i] != value_at(i, seed) ? 1u : 0u;
  return count;
}

class LargeTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* heap = std::getenv("SHMEM_SYMMETRIC_SIZE");
    if (heap == nullptr || std::string_view(heap) != "5G")
      GTEST_SKIP() << "does not apply: large sizes are tested with SHMEM_SYMMETRIC_SIZE=5G only";
    MEMSPAN_NEEDS("memory_16g");
  }
};

TEST_F(LargeTest, PutAndGet) {
  Symmetric<unsigned char> memory(kBytes + 1);
  if (me() == 0) {
    std::vector<unsigned char> local(kBytes);
    fill(local.data(), kBytes, 1);
    shmem_putmem(memory.get(), local.data(), kBytes, next());
    std::memset(local.data(), 0, kBytes);
    shmem_quiet();
    shmem_getmem(local.data(), memory.get(), kBytes, next());
    EXPECT_EQ(differences(local.data(), kBytes, 1), 0u);
  }
  shmem_barrier_all();
  if (me() == 1 % peers()) {
    EXPECT_EQ(differences(memory.get(), kBytes, 1), 0u);
    EXPECT_EQ(memory[kBytes], 0);
  }
  shmem_barrier_all();
}

TEST_F(LargeTest, StridedPut) {
  constexpr std::ptrdiff_t kStride = (std::ptrdiff_t{1} << 30) + 3;  // in elements of two bytes
  Symmetric<short> memory(static_cast<std::size_t>(kStride) + 1);
  const short from[] = {17, 18};
  shmem_short_iput(memory.get(), from, kStride, 1, 2, next());
  shmem_barrier_all();
  EXPECT_EQ(memory[0], 17);
  EXPECT_EQ(memory[static_cast<std::size_t>(kStride)], 18);
  shmem_barrier_all();
}

TEST_F(LargeTest, Broadcast) {
  Symmetric<unsigned char> memory(kBytes);
  if (me() == 0) fill(memory.get(), kBytes, 2);
  shmem_barrier_all();
  EXPECT_EQ(shmem_uchar_broadcast(SHMEM_TEAM_WORLD, memory.get(), memory.get(), kBytes, 0), 0);
  EXPECT_EQ(differences(memory.get(), kBytes, 2), 0u);
  shmem_barrier_all();
}

TEST_F(LargeTest, Gathering) {
  constexpr std::size_t kPart = kTwoGiB / 2 + 77;
  Symmetric<unsigned char> from(kPart);
  Symmetric<unsigned char> to(kPart * static_cast<std::size_t>(peers()));
  fill(from.get(), kPart, me());
  shmem_barrier_all();
  EXPECT_EQ(shmem_uchar_fcollect(SHMEM_TEAM_WORLD, to.get(), from.get(), kPart), 0);
  for (int pe = 0; pe < peers(); ++pe)
    EXPECT_EQ(differences(to.get() + kPart * static_cast<std::size_t>(pe), kPart, pe), 0u) << pe;
  shmem_barrier_all();
}

TEST_F(LargeTest, ReductionInPlace) {
  Symmetric<unsigned char> memory(kBytes);
  fill(memory.get(), kBytes, me());
  shmem_barrier_all();
  EXPECT_EQ(shmem_uchar_xor_reduce(SHMEM_TEAM_WORLD, memory.get(), memory.get(), kBytes), 0);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kBytes; ++i) {
    unsigned all = 0;
    for (int pe = 0; pe < peers(); ++pe) all ^= value_at(i, pe);
    wrong += memory[i] != all ? 1u : 0u;
  }
  EXPECT_EQ(wrong, 0u);
  shmem_barrier_all();
}

}  // namespace
}  // namespace memspan::multi
