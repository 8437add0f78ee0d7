/* SPDX-License-Identifier: Apache-2.0
 * Share Memory among real processes: what works among members that are there, and what they agree
 * on. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <smem/host/smem_bm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/spaces.h"

static void check_facts(smem_shm_t space, int rank) {
  uint32_t reach = 99;
  CHECK(smem_shm_get_global_rank(space) == (uint32_t)rank);
  CHECK(smem_shm_get_global_rank_size(space) == (uint32_t)members);
  for (int i = 0; i < members; ++i) {
    CHECK(smem_shm_topology_can_reach(space, (uint32_t)i, &reach) == SMEM_OK);
    CHECK(is_near(rank, i) ? reach == (SMEMS_DATA_OP_MTE | SMEMS_DATA_OP_SDMA) : reach == 0);
  }
  uint32_t size = 99;
  uint32_t kept = 0;
  CHECK(smem_shm_get_extra_context(space, NULL, 0, &size) == SMEM_OK && size == 0);
  CHECK(smem_shm_set_extra_context(space, &reach, sizeof reach) == SMEM_OK);
  CHECK(smem_shm_get_extra_context(space, &kept, sizeof kept, &size) == SMEM_OK);
  CHECK(size == sizeof reach && kept == reach);
}

/* The same key for every pair of neighbours, one pair after the other, and for all but one. */
static void check_subgroups(smem_shm_t space, int rank) {
  for (int first = 0; first + 1 < members; ++first) {
    if (rank == first || rank == first + 1) {
      const char mine[2] = {(char)('a' + rank), (char)first};
      char all[4];
      for (int round = 0; round < 3; ++round) {
        CHECK(smem_shm_subgroup_allgather(space, "pair", 2, (uint32_t)(rank - first), mine, 2, all,
                                          4) == SMEM_OK);
        CHECK(all[0] == 'a' + first && all[2] == 'b' + first && all[1] == first && all[3] == first);
        CHECK(smem_shm_subgroup_barrier(space, "pair", 2, (uint32_t)(rank - first)) == SMEM_OK);
      }
    }
    CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  }
  for (int absent = 0; absent < members && members > 1; ++absent) {
    if (rank != absent)
      CHECK(smem_shm_subgroup_barrier(space, "pair", (uint32_t)members - 1,
                                      (uint32_t)(rank - (rank > absent))) == SMEM_OK);
    CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  }
  CHECK(smem_shm_subgroup_barrier(space, "alone", 1, 0) == SMEM_OK);
}

static void works(int rank) {
  char* base = NULL;
  begin(rank);
  begin(rank); /* once more is fine */
  for (uint32_t id = 0; id < 64; id += 63) {
    const size_t size = id == 0 ? kSize : 100003; /* of no page's size */
    smem_shm_t space = create(id, rank, size, &base);
    check_memory(space, base, rank, size);
    check_facts(space, rank);
    check_allgather(space, rank, 1);
    check_allgather(space, rank, 65536);
    if (id == 0) check_barrier(space);
    check_subgroups(space, rank);
    CHECK(smem_shm_control_barrier(space) == SMEM_OK);
    CHECK(smem_shm_destroy(space, 0) == SMEM_OK);
    FAILS(smem_shm_destroy(space, 0), SMEM_NOT_EXIST, "input handle is invalid");
  }
  smem_shm_uninit(0);
}
SCENARIO(works_alone, 1, int rank) {
  works(rank);
}
SCENARIO(works_for_two, 2, int rank) {
  works(rank);
}
SCENARIO(works_for_three, 3, int rank) {
  works(rank);
}
SCENARIO(works_for_five, 5, int rank) {
  works(rank);
}

SCENARIO(is_made_again, 3, int rank) {
  char* base = NULL;
  begin(rank);
  for (int round = 0; round < 8; ++round) {
    const size_t size = round % 2 == 0 ? 4096 : (size_t)kSize * (size_t)round;
    smem_shm_t space = create(5, rank, size, &base);
    check_memory(space, base, rank, size);
    CHECK(smem_shm_destroy(space, 0) == SMEM_OK);
  }
  smem_shm_uninit(0);
  begin(rank);
  smem_shm_t space = create(5, rank, 0, &base);
  CHECK(base != NULL);
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  /* and does not say goodbye */
}

static void* make_second(void* rank) {
  char* base = NULL;
  smem_shm_t space = create(2, *(int*)rank, 4096, &base);
  check_memory(space, base, *(int*)rank, 4096);
  return space;
}

SCENARIO(two_at_once, 3, int rank) {
  char* base = NULL;
  void* second = NULL;
  pthread_t thread;
  begin(rank);
  CHECK(pthread_create(&thread, NULL, make_second, &rank) == 0);
  smem_shm_t first = create(1, rank, kSize, &base);
  for (int round = 0; round < 50; ++round) CHECK(smem_shm_control_barrier(first) == SMEM_OK);
  CHECK(pthread_join(thread, &second) == 0 && second != NULL && second != first);
  CHECK(smem_shm_control_barrier(second) == SMEM_OK);
  CHECK(smem_shm_destroy(second, 0) == SMEM_OK);
  CHECK(smem_shm_control_barrier(first) == SMEM_OK);
}

SCENARIO(with_big_memory, 3, int rank) {
  smem_bm_config_t made;
  char* base = NULL;
  smem_bm_config_init(&made);
  made.startConfigStoreServer = made.autoRanking = false;
  made.rankId = (uint16_t)rank;
  begin(rank);
  CHECK(smem_bm_init(page->url, (uint32_t)members, 0, &made) == SMEM_OK);
  smem_bm_t pool = smem_bm_create(0, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0);
  CHECK(pool != NULL && smem_bm_join(pool, 0, NULL) == SMEM_OK);
  smem_shm_t space = create(0, rank, kSize, &base);
  check_memory(space, base, rank, kSize);
  const int right = (rank + 1) % members;
  smem_copy_params params = {base + (size_t)rank * kSize,
                             smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, (uint16_t)right),
                             kSize};
  fill(base + (size_t)rank * kSize, kSize, rank);
  CHECK(smem_bm_copy(pool, &params, SMEMB_COPY_H2G, 0) == SMEM_OK);
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  CHECK(is_filled(smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, (uint16_t)rank), kSize,
                  (rank + members - 1) % members));
  smem_shm_uninit(0);
  CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK); /* the store is still there */
  smem_bm_uninit(0);
}

LONE_SCENARIO(rank_0_hosts, 2, int rank) {
  smem_shm_config_t made = config(kSeconds, kSeconds);
  char* base = NULL;
  made.startConfigStoreServer = true;
  CHECK(smem_shm_init(page->url, (uint32_t)members, (uint32_t)rank, 0, &made) == SMEM_OK);
  smem_shm_t space = create(0, rank, kSize, &base);
  check_memory(space, base, rank, kSize);
  meet(members); /* or rank 0 ends the store before the others are through */
}

enum { kEach = 20 };

static void take_number(smem_shm_t space, uint32_t limit) {
  uint32_t number = UINT32_MAX;
  CHECK(smem_shm_atomic_alloc_value(space, limit, &number) == SMEM_OK);
  CHECK(number < limit);
  CHECK(atomic_fetch_add(&page->words[number], 1) == 0); /* nobody else has it */
}

SCENARIO(numbers_are_unique, 5, int rank) {
  const uint32_t limit = kEach * (uint32_t)members;
  const int last = members - 1;
  char* base = NULL;
  uint32_t number = 0;
  begin(rank);
  smem_shm_t space = create(0, rank, 0, &base);
  for (int i = 0; i < kEach; ++i) take_number(space, limit);
  meet(members);
  for (uint32_t i = 0; i < limit; ++i) CHECK(page->words[i] == 1);
  FAILS(smem_shm_atomic_alloc_value(space, limit, &number), SMEM_NO_RESOURCES, "taken");
  FAILS(smem_shm_atomic_release_value(space, (int32_t)limit), SMEM_NOT_EXIST, "number");
  FAILS(smem_shm_atomic_release_value(space, -1), SMEM_NOT_EXIST, "number");
  meet(members);
  if (rank == last) {
    /* Back one by one, and the lowest again. */
    for (uint32_t i = 0; i < limit; ++i)
      if (smem_shm_atomic_release_value(space, (int32_t)i) == SMEM_OK) {
        FAILS(smem_shm_atomic_release_value(space, (int32_t)i), SMEM_NOT_EXIST, "number");
        CHECK(smem_shm_atomic_alloc_value(space, limit, &number) == SMEM_OK && number == i);
      }
    atomic_store(&page->words[200], 1);
    pause();
  }
  await_word(200, 1);
  if (rank != 0) return;
  /* Those of the dead and of who has gone come back. */
  end_member(last);
  for (int i = 0; i < kEach * last; ++i)
    while (smem_shm_atomic_alloc_value(space, limit, &number) != SMEM_OK) {
      CHECK(smem_get_last_err_code() == SMEM_NO_RESOURCES);
      sched_yield(); /* until the store has noticed */
    }
}

static _Atomic int calls;
static _Atomic int told;

static void note_exit(int status) {
  atomic_store(&told, status);
  atomic_fetch_add(&calls, 1);
}

static smem_shm_t to_destroy;
static void destroy_at_exit(int status) {
  note_exit(smem_shm_destroy(to_destroy, 0) == SMEM_OK ? status : -1);
}

static int await_calls(int count) {
  while (atomic_load(&calls) != count) sched_yield();
  return told;
}

SCENARIO(exits_are_told_once, 3, int rank) {
  char* base = NULL;
  begin(rank);
  for (int round = 0; round < 2; ++round) { /* once in each space's life */
    smem_shm_t space = create(0, rank, 0, &base);
    atomic_store(&calls, 0);
    if (rank != 2) CHECK(smem_shm_register_exit(space, note_exit) == SMEM_OK);
    if (rank != 2) FAILS(smem_shm_register_exit(space, note_exit), SMEM_REPEAT_INVOKE, "already");
    CHECK(smem_shm_control_barrier(space) == SMEM_OK);
    if (rank == 1) smem_shm_global_exit(space, 7 + round);
    if (rank != 2) CHECK(await_calls(1) == 7 + round);
    CHECK(smem_shm_control_barrier(space) == SMEM_OK);
    smem_shm_global_exit(space, 70); /* too late */
    CHECK(smem_shm_control_barrier(space) == SMEM_OK);
    /* Who comes late is told, too, and may end the space then. */
    if (rank == 2) {
      to_destroy = space;
      CHECK(smem_shm_register_exit(space, destroy_at_exit) == SMEM_OK);
      CHECK(await_calls(1) == 7 + round);
    }
    meet(members);
    CHECK(calls == 1 && told == 7 + round);
    CHECK(smem_shm_destroy(space, 0) == (rank == 2 ? SMEM_NOT_EXIST : SMEM_OK));
  }
}

SCENARIO(a_child_begins_anew, 1, int rank) {
  char* base = NULL;
  begin(rank);
  smem_shm_t space = create(0, rank, 8, &base);
  const pid_t child = fork();
  if (child == 0) {
    int is_right = smem_shm_control_barrier(space) == SMEM_NOT_INIT;
    _exit(is_right ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
}
