// SPDX-License-Identifier: Apache-2.0
#include "pgas/collective/collective.h"

#include <cstring>
#include <numeric>

#include "pgas/reduction/kernels.h"
#include "unit/pgas/thread_job.h"

namespace memspan {
namespace {

using namespace pgas;

// Sizes on both sides of every change of method: flags (56 B), eager buffer (2 KiB), slices.
constexpr std::size_t kCounts[] = {0, 1, 2, 7, 8, 100, 256, 257, 1000, 50'001};
constexpr std::size_t kMostCount = 50'001;

struct Buffers {
  explicit Buffers(Team& team)
      : source(reinterpret_cast<std::int64_t*>(team.world().heap().base())),
        dest(source + 8 * kMostCount) {}
  std::int64_t* source;
  std::int64_t* dest;
};

std::int64_t value_of(int member, std::size_t i) {
  return member * 1'000'003 + static_cast<std::int64_t>(i * 7) - 50;
}

class CollectiveTest : public testing::TestWithParam<JobShape> {
 protected:
  // The body runs for every count on the world team and on a reversed one.
  static void for_all(const std::function<void(Team&, Buffers&, std::size_t)>& body) {
    run_job(GetParam(), [&](Team& world) {
      auto reversed = world.split("test", {world.size() - 1, -1, world.size()}).value();
      for (Team* team : {&world, reversed.get()})
        for (std::size_t count : kCounts) {
          Buffers buffers(*team);
          std::fill_n(buffers.dest, 8 * kMostCount, -7);
          for (std::size_t i = 0; i < count; ++i) buffers.source[i] = value_of(team->index(), i);
          ASSERT_TRUE(team->barrier("test").is_ok());
          body(*team, buffers, count);
          ASSERT_TRUE(team->barrier("test").is_ok());
        }
      ASSERT_TRUE(reversed->destroy("test").is_ok());
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Jobs, CollectiveTest, all_job_shapes(), job_name);

TEST_P(CollectiveTest, BroadcastGivesEverybodyTheRootsData) {
  for_all([](Team& team, Buffers& buffers, std::size_t count) {
    for (int root = 0; root < team.size(); ++root) {
      ASSERT_TRUE(broadcast(team, "test", buffers.dest, buffers.source, count * 8, root).is_ok());
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(buffers.dest[i], value_of(root, i));
      ASSERT_EQ(buffers.dest[count], -7);
    }
  });
}

TEST_P(CollectiveTest, FcollectPlacesEverybodyInOrder) {
  for_all([](Team& team, Buffers& buffers, std::size_t count) {
    ASSERT_TRUE(fcollect(team, "test", buffers.dest, buffers.source, count * 8).is_ok());
    for (int member = 0; member < team.size(); ++member)
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(buffers.dest[static_cast<std::size_t>(member) * count + i], value_of(member, i));
  });
}

TEST_P(CollectiveTest, CollectPlacesDifferentSizesInOrder) {
  for_all([](Team& team, Buffers& buffers, std::size_t count) {
    auto size_of = [count](int member) { return count * static_cast<std::size_t>(member % 3) / 2; };
    ASSERT_TRUE(
        collect(team, "test", buffers.dest, buffers.source, size_of(team.index()) * 8).is_ok());
    std::int64_t* next = buffers.dest;
    for (int member = 0; member < team.size(); ++member)
      for (std::size_t i = 0; i < size_of(member); ++i) ASSERT_EQ(*next++, value_of(member, i));
  });
}

TEST_P(CollectiveTest, AlltoallSendsBlockJToMemberJ) {
  for_all([](Team& team, Buffers& buffers, std::size_t count) {
    std::size_t block = count / static_cast<std::size_t>(team.size());
    ASSERT_TRUE(alltoall(team, "test", buffers.dest, buffers.source, block * 8).is_ok());
    auto mine = static_cast<std::size_t>(team.index());
    for (int member = 0; member < team.size(); ++member)
      for (std::size_t i = 0; i < block; ++i)
        ASSERT_EQ(buffers.dest[static_cast<std::size_t>(member) * block + i],
                  value_of(member, mine * block + i));
  });
}

TEST_P(CollectiveTest, AlltoallsHonoursBothStrides) {
  for_all([](Team& team, Buffers& buffers, std::size_t count) {
    std::size_t block = count / static_cast<std::size_t>(2 * team.size());
    ASSERT_TRUE(alltoalls(team, "test", buffers.dest, buffers.source, 3, 2, block, 8).is_ok());
    auto mine = static_cast<std::size_t>(team.index());
    for (int member = 0; member < team.size(); ++member)
      for (std::size_t i = 0; i < block; ++i)
        ASSERT_EQ(buffers.dest[3 * (static_cast<std::size_t>(member) * block + i)],
                  value_of(member, 2 * (mine * block + i)));
  });
}

TEST_P(CollectiveTest, SumMinMaxXorOverAllMembers) {
  for_all([](Team& team, Buffers& buffers, std::size_t count) {
    auto check = [&](const ReductionKernel& kernel, auto combined) {
      ASSERT_TRUE(reduce(team, "test", buffers.dest, buffers.source, count, kernel).is_ok());
      for (std::size_t i = 0; i < count; ++i) {
        std::int64_t expected = value_of(0, i);
        for (int member = 1; member < team.size(); ++member)
          expected = combined(expected, value_of(member, i));
        ASSERT_EQ(buffers.dest[i], expected) << i;
      }
      ASSERT_TRUE(team.barrier("test").is_ok());
    };
    using T = std::int64_t;
    check((reduction_kernel<T, Operator::kSum>()), [](T a, T b) { return a + b; });
    check((reduction_kernel<T, Operator::kMin>()), [](T a, T b) { return std::min(a, b); });
    check((reduction_kernel<T, Operator::kMax>()), [](T a, T b) { return std::max(a, b); });
    check((reduction_kernel<T, Operator::kXor>()), [](T a, T b) { return a ^ b; });
  });
}

TEST_P(CollectiveTest, ReducesInPlace) {
  for_all([](Team& team, Buffers& buffers, std::size_t count) {
    ASSERT_TRUE(reduce(team, "test", buffers.source, buffers.source, count,
                       (reduction_kernel<std::int64_t, Operator::kSum>()))
                    .is_ok());
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t expected = 0;
      for (int member = 0; member < team.size(); ++member) expected += value_of(member, i);
      ASSERT_EQ(buffers.source[i], expected);
    }
  });
}

TEST_P(CollectiveTest, FloatsHaveTheSameBitsOnEveryMember) {
  run_job(GetParam(), [](Team& team) {
    auto* source = reinterpret_cast<float*>(team.world().heap().base());
    float* dest = source + 100'000;
    for (std::size_t count : {1u, 13u, 500u, 70'001u}) {
      for (std::size_t i = 0; i < count; ++i)
        source[i] = 1.0f / static_cast<float>(1 + i + 31 * static_cast<std::size_t>(team.index()));
      ASSERT_TRUE(team.barrier("test").is_ok());
      ASSERT_TRUE(
          reduce(team, "test", dest, source, count, (reduction_kernel<float, Operator::kSum>()))
              .is_ok());
      std::uint64_t hash = 0;
      for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, dest + i, sizeof bits);
        hash = hash * 1099511628211u + bits;
      }
      ASSERT_TRUE(team.barrier("test", &hash, 1).is_ok());
      for (int member = 0; member < team.size(); ++member) EXPECT_EQ(team.word(member, 0), hash);
      ASSERT_TRUE(team.barrier("test").is_ok());
    }
  });
}

TEST(OperatorsTest, IntegersWrapInTheirOwnType) {
  std::int8_t a[] = {127, -128, 100};
  const std::int8_t b[] = {1, -1, 3};
  reduction_kernel<std::int8_t, Operator::kSum>().accumulate(a, b, 3);
  EXPECT_EQ(a[0], -128);
  EXPECT_EQ(a[1], 127);
  EXPECT_EQ(a[2], 103);
  std::int64_t big[] = {INT64_MAX};
  const std::int64_t two[] = {2};
  reduction_kernel<std::int64_t, Operator::kProduct>().accumulate(big, two, 1);
  EXPECT_EQ(big[0], -2);
}

}  // namespace
}  // namespace memspan
