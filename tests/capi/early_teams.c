/* SPDX-License-Identifier: Apache-2.0
 * Teams of the early CANN names: any process makes one alone, with arguments of its own. */
#include <shmem_api.h>

#include "support/check.h"

enum { kRanks = 4, kRounds = 200 };
static int rank;
static int32_t* counts; /* in everybody's memory: how often its owner has come to a meeting */

/* -1: to no team. */
static shmem_team_t split(shmem_team_t parent, int start, int stride, int size) {
  shmem_team_t team = 7;
  CHECK(shmem_team_split_strided(parent, start, stride, size, &team) == 0);
  return team;
}

/* Nobody passes before all members have come. */
static void meet(shmem_team_t team) {
  const int32_t mine = ++counts[rank];
  const int members = shmem_team_n_pes(team);
  for (int member = 0; member < members; ++member) {
    const int pe = shmem_team_translate_pe(team, member, SHMEM_TEAM_WORLD);
    shmem_int32_p(&counts[rank], mine, pe);
  }
  shmem_barrier(team);
  for (int member = 0; member < members; ++member) {
    const int pe = shmem_team_translate_pe(team, member, SHMEM_TEAM_WORLD);
    CHECK(counts[pe] >= mine);
  }
}

static void forget(void) {
  shmem_barrier_all();
  for (int pe = 0; pe < kRanks; ++pe) counts[pe] = 0;
  shmem_barrier_all();
}

static void one_alone(void) {
  if (rank == 1) {
    shmem_team_t alone = split(SHMEM_TEAM_WORLD, 1, 1, 1);
    CHECK(alone > 0 && shmem_team_n_pes(alone) == 1);
    meet(alone);
    shmem_team_destroy(alone);
    CHECK(split(SHMEM_TEAM_WORLD, 2, 1, 2) == SHMEM_TEAM_INVALID);
  }
  forget();
}

static void each_its_own(void) {
  const int first = rank / 2 * 2;
  shmem_team_t pair = split(SHMEM_TEAM_WORLD, first, 1, 2);
  for (int round = 0; round < kRounds; ++round) meet(pair);
  shmem_team_destroy(pair);
  forget();
}

/* {0, 1} and {1, 2, 3}, which have other numbers here and there. */
static void overlapping(void) {
  shmem_team_t low = rank < 2 ? split(SHMEM_TEAM_WORLD, 0, 1, 2) : SHMEM_TEAM_INVALID;
  shmem_team_t high = rank > 0 ? split(SHMEM_TEAM_WORLD, 1, 1, 3) : SHMEM_TEAM_INVALID;
  for (int round = 0; round < kRounds; ++round) {
    if (low != SHMEM_TEAM_INVALID) meet(low);
    if (high != SHMEM_TEAM_INVALID) shmem_barrier(high);
  }
  if (low != SHMEM_TEAM_INVALID) shmem_team_destroy(low);
  if (high != SHMEM_TEAM_INVALID) shmem_team_destroy(high);
  forget();
}

/* The same members by another way, twice, and made again by some. */
static void the_same_again(void) {
  shmem_team_t one, two;
  if (rank % 2 == 0) {
    shmem_team_t all = split(SHMEM_TEAM_WORLD, 0, 1, 4);
    one = split(all, 0, 2, 2);
    two = split(SHMEM_TEAM_WORLD, 0, 2, 2);
    shmem_team_destroy(all);
  } else {
    one = split(SHMEM_TEAM_WORLD, 1, 2, 2);
    two = split(SHMEM_TEAM_WORLD, 1, 2, 2);
  }
  CHECK(one > 0 && two > 0 && one != two);
  for (int round = 0; round < kRounds; ++round) {
    meet(one);
    meet(two);
    if (rank > 1) { /* only one of two members */
      shmem_team_destroy(one);
      one = split(SHMEM_TEAM_WORLD, rank - 2, 2, 2);
    }
  }
  shmem_team_destroy(one);
  meet(two);
  shmem_team_destroy(two);
  forget();
}

static void rows_and_columns(void) {
  shmem_team_t x, y;
  if (rank != 3) {
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, &x, &y) == 0);
    CHECK(shmem_team_my_pe(x) == rank % 2 && shmem_team_my_pe(y) == rank / 2);
    if (rank < 2) meet(x);
    if (rank % 2 == 0) shmem_barrier(y);
  }
  forget();
}

int main(void) {
  shmem_init_attr_t* attributes = NULL;
  const char* text = getenv("RANK");
  CHECK(text != NULL);
  rank = atoi(text);
  CHECK(shmem_set_attr(rank, kRanks, 1 << 20, "tcp://127.0.0.1:8668", &attributes) == 0);
  CHECK(shmem_init_attr(attributes) == 0 && shmem_my_pe() == rank);
  counts = shmem_calloc(kRanks, sizeof *counts);
  CHECK(counts != NULL);
  one_alone();
  each_its_own();
  overlapping();
  the_same_again();
  rows_and_columns();
  shmem_free(counts);
  return shmem_finalize();
}
