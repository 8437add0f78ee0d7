/* SPDX-License-Identifier: Apache-2.0
 * Waiting for members of a pool: those who come, who do not, who die, and a store that ends. */
#include <memspan/memspan.h>
#include <memspan/pool.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "fabric/pools.h"

enum { kLong = 20000 }; /* ms */

static smem_bm_t unjoined_pool(int number) {
  begin(number);
  smem_bm_t pool = smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0);
  CHECK(pool != NULL);
  return pool;
}

static void join(smem_bm_t pool) {
  CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK);
}

/* The last member joins while the others wait: then all can copy to all. */
SCENARIO(all_wait_for_all, 4, int number) {
  smem_bm_t pool = unjoined_pool(number);
  if (number == 3) await_count(0, 3);
  join(pool);
  atomic_fetch_add(&page->words[0], 1);
  CHECK(memspan_pool_wait_members(pool, (uint32_t)members, kLong) == SMEM_OK);
  for (int rank = 0; rank < members; ++rank) {
    char byte = (char)number;
    CHECK(memspan_pool_wait_rank(pool, (uint32_t)rank, 0) == SMEM_OK);
    CHECK(copy(pool, &byte, host_of(pool, rank) + number, 1, SMEMB_COPY_H2G, 0) == SMEM_OK);
  }
  meet(members);
}

/* One rank is enough, and no other one is waited for. */
SCENARIO(one_rank_is_waited_for, 3, int number) {
  smem_bm_t pool = unjoined_pool(number);
  if (number == 0) {
    join(pool);
    atomic_store(&page->words[0], 1);
    CHECK(memspan_pool_wait_rank(pool, 0, 0) == SMEM_OK);
    CHECK(memspan_pool_wait_rank(pool, 2, kLong) == SMEM_OK);
    char byte = 1;
    CHECK(copy(pool, &byte, host_of(pool, 2), 1, SMEMB_COPY_H2G, 0) == SMEM_OK);
    CHECK(memspan_pool_wait_members(pool, 2, 0) == SMEM_OK);
    FAILS(memspan_pool_wait_rank(pool, 1, 0), SMEM_TIMEOUT, "rank 1 is not in the pool");
  } else if (number == 2) {
    await_word(0, 1);
    join(pool);
  }
  meet(members);
}

SCENARIO(a_wait_ends_by_its_limit, 2, int number) {
  smem_bm_t pool = unjoined_pool(number);
  if (number == 0) {
    join(pool);
    const double before = now();
    FAILS(memspan_pool_wait_members(pool, 2, 300), SMEM_TIMEOUT,
          "1 of 2 members are in the pool (0)");
    CHECK(now() - before >= 0.3 && now() - before < 5);
    FAILS(memspan_pool_wait_members(pool, 2, 0), SMEM_TIMEOUT, "1 of 2 members");
    CHECK(memspan_pool_wait_members(pool, 1, 0) == SMEM_OK);
  }
  meet(members);
}

SCENARIO(waits_refuse_nonsense, 2, int number) {
  smem_bm_t pool = unjoined_pool(number);
  FAILS(memspan_pool_wait_members(pool, 1, 0), SMEM_NOT_STARTED, "has not joined");
  REFUSES(memspan_pool_wait_members(NULL, 1, 0), "handle is NULL");
  join(pool);
  REFUSES(memspan_pool_wait_members(pool, 0, 0), "count is 0, allowed are 1 to 2");
  REFUSES(memspan_pool_wait_members(pool, 3, 0), "count is 3, allowed are 1 to 2");
  REFUSES(memspan_pool_wait_rank(pool, 2, 0), "rank is 2, allowed are 0 to 1");
  meet(members);
}

/* Called by a wait: both waiters are in it when member 0 kills member 1. */
static int kill_member_1(void) {
  atomic_fetch_add(&page->words[1], 1);
  await_count(1, 2);
  end_member(1);
  return 0;
}
static int say_that_it_waits(void) {
  atomic_fetch_add(&page->words[1], 1);
  return 0;
}

/* Member 1 dies while members 0 and 2 wait for one more, and only then. */
SCENARIO(a_death_ends_a_wait, 4, int number) {
  smem_bm_t pool = unjoined_pool(number);
  if (number == 3) { /* the one that never joins */
    meet(members);
    await_word(2, 2);
    return;
  }
  join(pool);
  CHECK(memspan_pool_wait_members(pool, 3, kLong) == SMEM_OK);
  meet(members);
  if (number == 1)
    for (;;) pause();
  memspan_set_thread_interrupt_handler(number == 0 ? kill_member_1 : say_that_it_waits);
  const double before = now();
  FAILS(memspan_pool_wait_members(pool, 4, kLong), SMEM_NOT_CONNECTED,
        "rank 1 left the pool, or ended");
  CHECK(now() - before < 10);
  atomic_fetch_add(&page->words[2], 1);
  await_word(2, 2);
}

/* A store that ends has no news of members: the waits end. */
SCENARIO(the_end_of_the_store_ends_a_wait, 2, int number) {
  smem_bm_t pool = unjoined_pool(number);
  if (number == 0) join(pool);
  meet(members);
  if (number == 1) {
    await_word(0, 1);
    end_helper();
    await_word(0, 2);
    return;
  }
  atomic_store(&page->words[0], 1);
  const double before = now();
  FAILS(memspan_pool_wait_members(pool, 2, UINT32_MAX), SMEM_NOT_CONNECTED, "the store");
  CHECK(now() - before < 10);
  atomic_store(&page->words[0], 2);
}

static int always(void) {
  return 1;
}

SCENARIO(an_interrupt_ends_a_wait, 2, int number) {
  smem_bm_t pool = unjoined_pool(number);
  if (number == 0) {
    join(pool);
    memspan_set_thread_interrupt_handler(always);
    const double before = now();
    FAILS(memspan_pool_wait_members(pool, 2, UINT32_MAX), SMEM_ERROR, "interrupted");
    CHECK(now() - before < 5);
    memspan_set_thread_interrupt_handler(NULL);
  }
  meet(members);
}

static void* wait_for_ever(void* pool) {
  atomic_fetch_add(&page->words[0], 1);
  const int32_t code = memspan_pool_wait_members(pool, 2, UINT32_MAX);
  /* A thread that comes late finds the handle gone. */
  return code == SMEM_NOT_STARTED || code == SMEM_NOT_EXIST ? NULL : pool;
}

/* leave and destroy of another thread end a wait without a limit. */
SCENARIO(a_pool_that_is_left_is_not_waited_for, 2, int number) {
  smem_bm_t pool = unjoined_pool(number);
  for (uint64_t round = 0; number == 0 && round < 2; ++round) {
    pthread_t thread;
    void* wrong = NULL;
    join(pool);
    CHECK(pthread_create(&thread, NULL, wait_for_ever, pool) == 0);
    await_count(0, round + 1);
    FAILS(memspan_pool_wait_members(pool, 2, 100), SMEM_TIMEOUT, "1 of 2");
    if (round == 0)
      CHECK(smem_bm_leave(pool, 0) == SMEM_OK);
    else
      smem_bm_destroy(pool);
    CHECK(pthread_join(thread, &wrong) == 0);
    CHECK(wrong == NULL);
  }
  meet(members);
}
