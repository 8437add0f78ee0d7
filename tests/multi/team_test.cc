// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "job.h"

namespace memspan::multi {
namespace {

TEST(TeamTest, TheWorldIsEverybodyInOrder) {
  EXPECT_EQ(shmem_team_my_pe(SHMEM_TEAM_WORLD), me());
  EXPECT_EQ(shmem_team_n_pes(SHMEM_TEAM_WORLD), peers());
  EXPECT_EQ(shmem_team_my_pe(SHMEM_TEAM_INVALID), -1);
  EXPECT_EQ(shmem_team_n_pes(SHMEM_TEAM_INVALID), -1);
}

// Those whose memory this process reaches by loads and stores.
TEST(TeamTest, TheSharedTeamIsThoseThatShareMemory) {
  Symmetric<long> word(1);
  int sharing = 0;
  for (int pe = 0; pe < peers(); ++pe) {
    const int member = shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED);
    EXPECT_EQ(member, shmem_ptr(word.get(), pe) != nullptr ? sharing++ : -1) << pe;
  }
  EXPECT_EQ(shmem_team_n_pes(SHMEM_TEAM_SHARED), sharing);
  EXPECT_EQ(shmem_team_sync(SHMEM_TEAM_SHARED), 0);
}

TEST(TeamTest, StridedSplitsTranslateAndNest) {
  shmem_team_t odd = SHMEM_TEAM_INVALID;
  int odd_count = peers() / 2;
  if (odd_count == 0) {
    EXPECT_NE(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, 1, nullptr, 0, &odd), 0);
    EXPECT_EQ(odd, SHMEM_TEAM_INVALID);
    return;
  }
  ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, odd_count, nullptr, 0, &odd), 0);
  EXPECT_EQ(odd != SHMEM_TEAM_INVALID, me() % 2 == 1);
  if (odd == SHMEM_TEAM_INVALID) return;
  EXPECT_EQ(shmem_team_my_pe(odd), me() / 2);
  EXPECT_EQ(shmem_team_n_pes(odd), odd_count);
  EXPECT_EQ(shmem_team_translate_pe(odd, 0, SHMEM_TEAM_WORLD), 1);
  EXPECT_EQ(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, odd), -1);
  shmem_team_t last = SHMEM_TEAM_INVALID;
  ASSERT_EQ(shmem_team_split_strided(odd, odd_count - 1, 0, 1, nullptr, 0, &last), 0);
  EXPECT_EQ(last != SHMEM_TEAM_INVALID, me() / 2 == odd_count - 1);
  shmem_team_destroy(last);
  shmem_team_destroy(odd);
}

TEST(TeamTest, RowsAndColumnsOfAGrid) {
  constexpr int kRow = 3;
  shmem_team_t row = SHMEM_TEAM_INVALID;
  shmem_team_t column = SHMEM_TEAM_INVALID;
  ASSERT_EQ(shmem_team_split_2d(SHMEM_TEAM_WORLD, kRow, nullptr, 0, &row, nullptr, 0, &column), 0);
  int range = std::min(kRow, peers());
  EXPECT_EQ(shmem_team_my_pe(row), me() % range);
  EXPECT_EQ(shmem_team_my_pe(column), me() / range);
  EXPECT_EQ(shmem_team_translate_pe(row, 0, SHMEM_TEAM_WORLD), me() / range * range);
  EXPECT_EQ(shmem_team_translate_pe(column, 0, SHMEM_TEAM_WORLD), me() % range);
  Symmetric<long> sums(2);
  Symmetric<long> one(1);
  one[0] = 1;
  shmem_barrier_all();
  EXPECT_EQ(shmem_long_sum_reduce(row, sums.get(), one.get(), 1), 0);
  EXPECT_EQ(sums[0], shmem_team_n_pes(row));
  EXPECT_EQ(shmem_long_sum_reduce(column, sums.get() + 1, one.get(), 1), 0);
  EXPECT_EQ(sums[1], shmem_team_n_pes(column));
  shmem_team_sync(row);
  shmem_team_destroy(row);
  shmem_team_destroy(column);
}

TEST(TeamTest, ConfigurationComesBack) {
  shmem_team_config_t config = {};
  config.num_contexts = 3;
  shmem_team_t team = SHMEM_TEAM_INVALID;
  ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, peers(), &config,
                                     SHMEM_TEAM_NUM_CONTEXTS, &team),
            0);
  shmem_team_config_t got = {};
  EXPECT_EQ(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &got), 0);
  EXPECT_EQ(got.num_contexts, 3);
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  ASSERT_EQ(shmem_team_create_ctx(team, 0, &context), 0);
  shmem_team_t back = SHMEM_TEAM_INVALID;
  EXPECT_EQ(shmem_ctx_get_team(context, &back), 0);
  EXPECT_EQ(back, team);
  shmem_ctx_destroy(context);
  shmem_team_destroy(team);
}

TEST(TeamTest, ContextsOfATeamCountItsMembers) {
  shmem_team_t backward = SHMEM_TEAM_INVALID;
  ASSERT_EQ(
      shmem_team_split_strided(SHMEM_TEAM_WORLD, peers() - 1, -1, peers(), nullptr, 0, &backward),
      0);
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  ASSERT_EQ(shmem_team_create_ctx(backward, SHMEM_CTX_SERIALIZED, &context), 0);
  Symmetric<int> word(1);
  shmem_ctx_int_p(context, word.get(), 40 + me(), 0);  // member 0 is the last process
  shmem_ctx_quiet(context);
  shmem_barrier_all();
  if (me() == peers() - 1) {
    EXPECT_GE(word[0], 40);
  } else {
    EXPECT_EQ(word[0], 0);
  }
  shmem_ctx_destroy(context);
  shmem_team_destroy(backward);
}

TEST(TeamTest, WhatDoesNotFitIsRefused) {
  shmem_team_t team = SHMEM_TEAM_WORLD;
  EXPECT_NE(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, peers() + 1, nullptr, 0, &team), 0);
  EXPECT_EQ(team, SHMEM_TEAM_INVALID);
  team = SHMEM_TEAM_WORLD;
  EXPECT_NE(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, nullptr, 0, &team), 0);
  EXPECT_EQ(team, SHMEM_TEAM_INVALID);
  shmem_team_destroy(SHMEM_TEAM_INVALID);
}

}  // namespace
}  // namespace memspan::multi
