/* SPDX-License-Identifier: Apache-2.0
 * Share Memory among real processes. Each case is a test of its own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <smem/host/smem_bm.h>
#include <smem/host/smem_shm.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "family.h"

enum { kMiB = 1 << 20, kSize = 2 * kMiB };
/* Longer than anything takes here, and shorter than the test may take. */
enum { kSeconds = 25 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static smem_shm_config_t config(uint32_t create, uint32_t control) {
  smem_shm_config_t made;
  smem_shm_config_init(&made);
  made.startConfigStoreServer = false;
  made.shmInitTimeout = kSeconds;
  made.shmCreateTimeout = create;
  made.controlOperationTimeout = control;
  return made;
}

static int begin_with(int rank, uint32_t create, uint32_t control) {
  smem_shm_config_t made = config(create, control);
  EXPECT(smem_shm_init(page->url, (uint32_t)members, (uint32_t)rank, 0, &made) == SMEM_OK);
  return 0;
}

static int begin(int rank) {
  return begin_with(rank, kSeconds, kSeconds);
}

static smem_shm_t create(uint32_t id, int rank, uint64_t size, char** base) {
  void* gva = NULL;
  smem_shm_t space =
      smem_shm_create(id, (uint32_t)members, (uint32_t)rank, size, SMEMS_DATA_OP_MTE, 0, &gva);
  if (space == NULL) fprintf(stderr, "space %u: %s\n", id, smem_get_last_err_msg());
  *base = gva;
  return space;
}

/* That it was not made, for that reason. */
static int is_refused(smem_shm_t made, int32_t code, const char* words) {
  return made == NULL && is_failure(smem_get_last_err_code(), code, words);
}

static void fill(char* bytes, size_t count, int seed) {
  for (size_t i = 0; i < count; ++i) bytes[i] = (char)(i * 7 + (size_t)seed * 31 + i / 251);
}
static int is_filled(const char* bytes, size_t count, int seed) {
  for (size_t i = 0; i < count; ++i)
    if (bytes[i] != (char)(i * 7 + (size_t)seed * 31 + i / 251)) return 0;
  return 1;
}

/* ---- what works among members that are there ---------------------------------------------------
 */

/* Everybody writes into everybody's part, and finds what all wrote into the own one. */
static int check_memory(smem_shm_t space, char* base, int rank, size_t size) {
  const size_t share = size / (size_t)members;
  atomic_store(&page->words[rank], (uint64_t)(uintptr_t)base);
  for (size_t i = 0; i < size; ++i) EXPECT(base[(size_t)rank * size + i] == 0);
  EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
  for (int i = 0; i < members; ++i) {
    EXPECT(page->words[i] == (uint64_t)(uintptr_t)base);
    fill(base + (size_t)i * size + (size_t)rank * share, share, rank * 16 + i);
  }
  EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
  for (int i = 0; i < members; ++i)
    EXPECT(is_filled(base + (size_t)rank * size + (size_t)i * share, share, i * 16 + rank));
  EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
  return 0;
}

static int check_facts(smem_shm_t space, int rank) {
  uint32_t reach = 99;
  EXPECT(smem_shm_get_global_rank(space) == (uint32_t)rank);
  EXPECT(smem_shm_get_global_rank_size(space) == (uint32_t)members);
  for (int i = 0; i < members; ++i) {
    EXPECT(smem_shm_topology_can_reach(space, (uint32_t)i, &reach) == SMEM_OK);
    EXPECT(reach == (SMEMS_DATA_OP_MTE | SMEMS_DATA_OP_SDMA));
  }
  uint32_t size = 99;
  uint32_t kept = 0;
  EXPECT(smem_shm_get_extra_context(space, NULL, 0, &size) == SMEM_OK && size == 0);
  EXPECT(smem_shm_set_extra_context(space, &reach, sizeof reach) == SMEM_OK);
  EXPECT(smem_shm_get_extra_context(space, &kept, sizeof kept, &size) == SMEM_OK);
  EXPECT(size == sizeof reach && kept == reach);
  return 0;
}

static int check_allgather(smem_shm_t space, int rank, uint32_t bytes) {
  char* mine = malloc(bytes);
  char* all = malloc((size_t)bytes * (size_t)members);
  for (int round = 0; round < 3; ++round) {
    fill(mine, bytes, rank + round);
    EXPECT(smem_shm_control_allgather(space, mine, bytes, all, bytes * (uint32_t)members) ==
           SMEM_OK);
    for (int i = 0; i < members; ++i) EXPECT(is_filled(all + (size_t)i * bytes, bytes, i + round));
  }
  free(mine);
  free(all);
  return 0;
}

/* Nobody leaves before everybody came. */
static int check_barrier(smem_shm_t space) {
  for (uint64_t round = 1; round <= 50; ++round) {
    atomic_fetch_add(&page->words[100], 1);
    EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
    EXPECT(page->words[100] >= round * (uint64_t)members);
  }
  return 0;
}

/* The same key for every pair of neighbours, one pair after the other, and for all but one. */
static int check_subgroups(smem_shm_t space, int rank) {
  for (int first = 0; first + 1 < members; ++first) {
    if (rank == first || rank == first + 1) {
      const char mine[2] = {(char)('a' + rank), (char)first};
      char all[4];
      for (int round = 0; round < 3; ++round) {
        EXPECT(smem_shm_subgroup_allgather(space, "pair", 2, (uint32_t)(rank - first), mine, 2, all,
                                           4) == SMEM_OK);
        EXPECT(all[0] == 'a' + first && all[2] == 'b' + first && all[1] == first &&
               all[3] == first);
        EXPECT(smem_shm_subgroup_barrier(space, "pair", 2, (uint32_t)(rank - first)) == SMEM_OK);
      }
    }
    EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
  }
  for (int absent = 0; absent < members && members > 1; ++absent) {
    if (rank != absent)
      EXPECT(smem_shm_subgroup_barrier(space, "pair", (uint32_t)members - 1,
                                       (uint32_t)(rank - (rank > absent))) == SMEM_OK);
    EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
  }
  EXPECT(smem_shm_subgroup_barrier(space, "alone", 1, 0) == SMEM_OK);
  return 0;
}

static int works(int rank) {
  char* base = NULL;
  if (begin(rank) != 0) return 1;
  EXPECT(begin(rank) == 0); /* once more is fine */
  for (uint32_t id = 0; id < 64; id += 63) {
    const size_t size = id == 0 ? kSize : 100003; /* of no page's size */
    smem_shm_t space = create(id, rank, size, &base);
    EXPECT(space != NULL);
    if (check_memory(space, base, rank, size) != 0 || check_facts(space, rank) != 0) return 1;
    if (check_allgather(space, rank, 1) != 0 || check_allgather(space, rank, 65536) != 0) return 1;
    if (id == 0 && check_barrier(space) != 0) return 1;
    if (check_subgroups(space, rank) != 0) return 1;
    EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
    EXPECT(smem_shm_destroy(space, 0) == SMEM_OK);
    EXPECT_FAILURE(smem_shm_destroy(space, 0), SMEM_NOT_EXIST, "input handle is invalid");
  }
  smem_shm_uninit(0);
  return 0;
}

static int is_made_again(int rank) {
  char* base = NULL;
  if (begin(rank) != 0) return 1;
  for (int round = 0; round < 8; ++round) {
    const size_t size = round % 2 == 0 ? 4096 : (size_t)kSize * (size_t)round;
    smem_shm_t space = create(5, rank, size, &base);
    EXPECT(space != NULL);
    if (check_memory(space, base, rank, size) != 0) return 1;
    EXPECT(smem_shm_destroy(space, 0) == SMEM_OK);
  }
  smem_shm_uninit(0);
  if (begin(rank) != 0) return 1;
  smem_shm_t space = create(5, rank, 0, &base);
  EXPECT(space != NULL && base != NULL);
  EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
  return 0; /* and does not say goodbye */
}

static void* make_second(void* rank) {
  char* base = NULL;
  smem_shm_t space = create(2, *(int*)rank, 4096, &base);
  if (space == NULL || check_memory(space, base, *(int*)rank, 4096) != 0) return NULL;
  return space;
}

static int two_at_once(int rank) {
  char* base = NULL;
  void* second = NULL;
  pthread_t thread;
  if (begin(rank) != 0) return 1;
  EXPECT(pthread_create(&thread, NULL, make_second, &rank) == 0);
  smem_shm_t first = create(1, rank, kSize, &base);
  EXPECT(first != NULL);
  for (int round = 0; round < 50; ++round) EXPECT(smem_shm_control_barrier(first) == SMEM_OK);
  EXPECT(pthread_join(thread, &second) == 0 && second != NULL && second != first);
  EXPECT(smem_shm_control_barrier(second) == SMEM_OK);
  EXPECT(smem_shm_destroy(second, 0) == SMEM_OK);
  EXPECT(smem_shm_control_barrier(first) == SMEM_OK);
  return 0;
}

static int with_big_memory(int rank) {
  smem_bm_config_t made;
  char* base = NULL;
  smem_bm_config_init(&made);
  made.startConfigStoreServer = made.autoRanking = false;
  made.rankId = (uint16_t)rank;
  if (begin(rank) != 0) return 1;
  EXPECT(smem_bm_init(page->url, (uint32_t)members, 0, &made) == SMEM_OK);
  smem_bm_t pool = smem_bm_create(0, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0);
  EXPECT(pool != NULL && smem_bm_join(pool, 0, NULL) == SMEM_OK);
  smem_shm_t space = create(0, rank, kSize, &base);
  EXPECT(space != NULL && check_memory(space, base, rank, kSize) == 0);
  const int right = (rank + 1) % members;
  smem_copy_params params = {base + (size_t)rank * kSize,
                             smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, (uint16_t)right),
                             kSize};
  fill(base + (size_t)rank * kSize, kSize, rank);
  EXPECT(smem_bm_copy(pool, &params, SMEMB_COPY_H2G, 0) == SMEM_OK);
  EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
  EXPECT(is_filled(smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, (uint16_t)rank), kSize,
                   (rank + members - 1) % members));
  smem_shm_uninit(0);
  EXPECT(smem_bm_join(pool, 0, NULL) == SMEM_OK); /* the store is still there */
  smem_bm_uninit(0);
  return 0;
}

static int rank_0_hosts(int rank) {
  smem_shm_config_t made = config(kSeconds, kSeconds);
  char* base = NULL;
  made.startConfigStoreServer = true;
  EXPECT(smem_shm_init(page->url, (uint32_t)members, (uint32_t)rank, 0, &made) == SMEM_OK);
  smem_shm_t space = create(0, rank, kSize, &base);
  EXPECT(space != NULL && check_memory(space, base, rank, kSize) == 0);
  meet(members); /* or rank 0 ends the store before the others are through */
  return 0;
}

/* ---- who does not come, or goes ----------------------------------------------------------------
 */

/* The last rank misses a barrier, a subgroup's and a creation, and everything goes on. */
static int stays_in_step(int rank) {
  const int last = members - 1;
  char* base = NULL;
  void* gva = NULL;
  char words[64];
  snprintf(words, sizeof words, "did not come: rank %d", last);
  if (rank != last) {
    if (begin_with(rank, 1, kSeconds) != 0) return 1;
    EXPECT(is_refused(
        smem_shm_create(3, (uint32_t)members, (uint32_t)rank, 8, SMEMS_DATA_OP_MTE, 0, &gva),
        SMEM_TIMEOUT, "did not come"));
    smem_shm_uninit(0);
  }
  if (begin_with(rank, kSeconds, rank == last ? kSeconds : 2) != 0) return 1;
  meet(members);
  smem_shm_t space = create(3, rank, kSize, &base);
  EXPECT(space != NULL);
  if (rank != last) {
    EXPECT_FAILURE(smem_shm_control_barrier(space), SMEM_TIMEOUT, words);
    EXPECT_FAILURE(smem_shm_subgroup_barrier(space, "k", (uint32_t)members, (uint32_t)rank),
                   SMEM_TIMEOUT, "result:timeout");
  }
  meet(members);
  /* The late one finds the others' parts. */
  if (rank == last) {
    EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
    EXPECT(smem_shm_subgroup_barrier(space, "k", (uint32_t)members, (uint32_t)rank) == SMEM_OK);
  }
  meet(members);
  if (check_allgather(space, rank, 100) != 0 || check_barrier(space) != 0) return 1;
  for (int round = 0; round < 3; ++round)
    EXPECT(smem_shm_subgroup_barrier(space, "k", (uint32_t)members, (uint32_t)rank) == SMEM_OK);
  return 0;
}

/* The last but one ends the last one while the first waits for both. */
static int survives_a_death(int rank) {
  const int last = members - 1;
  char* base = NULL;
  char words[64];
  snprintf(words, sizeof words, "rank %d", last);
  if (begin(rank) != 0) return 1;
  smem_shm_t space = create(0, rank, kSize, &base);
  EXPECT(space != NULL);
  EXPECT(smem_shm_subgroup_barrier(space, "k", (uint32_t)members, (uint32_t)rank) == SMEM_OK);
  base[(size_t)rank * kSize] = (char)rank;
  EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
  if (rank == last) pause();
  if (rank == last - 1) end_member(last);
  const double began = now();
  EXPECT_FAILURE(smem_shm_control_barrier(space), SMEM_NOT_CONNECTED, words);
  EXPECT_FAILURE(smem_shm_subgroup_barrier(space, "k", (uint32_t)members, (uint32_t)rank),
                 SMEM_NOT_CONNECTED, words);
  EXPECT(now() - began < kSeconds / 2.0);
  /* What it had written is there. */
  EXPECT(base[(size_t)last * kSize] == (char)last);
  /* The others still meet, and make a space without it. */
  EXPECT(smem_shm_subgroup_barrier(space, "rest", (uint32_t)last, (uint32_t)rank) == SMEM_OK);
  EXPECT(smem_shm_destroy(space, 0) == SMEM_OK);
  void* gva = NULL;
  space = smem_shm_create(0, (uint32_t)last, (uint32_t)rank, kSize, SMEMS_DATA_OP_MTE, 0, &gva);
  EXPECT(space != NULL && smem_shm_control_barrier(space) == SMEM_OK);
  return 0;
}

/* Rank 2 sees that ranks 0 and 1 wait in a creation of four, where nobody is the fourth, and ends
 * rank 1. */
static int dies_in_creation(int rank) {
  void* gva = NULL;
  if (begin_with(rank, rank == 2 ? 1 : kSeconds, kSeconds) != 0) return 1;
  if (rank == 3) return 0;
  const double began = now();
  do EXPECT(smem_shm_create(9, 4, (uint32_t)rank, kSize, SMEMS_DATA_OP_MTE, 0, &gva) == NULL);
  while (rank == 2 && strstr(smem_get_last_err_msg(), "1 of 4 members did not come") == NULL);
  if (rank == 2) {
    end_member(1);
    return 0;
  }
  EXPECT(rank == 0 && is_failure(smem_get_last_err_code(), SMEM_NOT_CONNECTED, "rank 1"));
  EXPECT(now() - began < kSeconds);
  return 0;
}

/* Who destroys its space ends the others' meetings, and those of its own threads. */
static void* wait_in_barrier(void* space) {
  atomic_store(&page->words[0], 1);
  return (void*)(intptr_t)smem_shm_control_barrier(space);
}

static void* wait_in_subgroup(void* space) {
  atomic_store(&page->words[1], 1);
  return (void*)(intptr_t)smem_shm_subgroup_barrier(space, "k", 2, 1);
}

static int destroys_while_others_wait(int rank) {
  char* base = NULL;
  if (begin(rank) != 0) return 1;
  smem_shm_t space = create(0, rank, kSize, &base);
  EXPECT(space != NULL);
  const double began = now();
  if (rank == 1) {
    pthread_t threads[2];
    void* codes[2];
    EXPECT(pthread_create(&threads[0], NULL, wait_in_barrier, space) == 0);
    EXPECT(pthread_create(&threads[1], NULL, wait_in_subgroup, space) == 0);
    await_word(0, 1);
    await_word(1, 1);
    EXPECT(smem_shm_destroy(space, 0) == SMEM_OK);
    for (int i = 0; i < 2; ++i) {
      EXPECT(pthread_join(threads[i], &codes[i]) == 0);
      EXPECT((intptr_t)codes[i] != SMEM_OK && (intptr_t)codes[i] != SMEM_TIMEOUT);
    }
    atomic_store(&page->words[2], 1);
  } else {
    if (rank == 0) await_word(2, 1);
    /* What rank 1 came to before may still be complete; more does not come. */
    const int32_t code = smem_shm_control_barrier(space);
    EXPECT(code == SMEM_OK || is_failure(code, SMEM_NOT_CONNECTED, "rank 1"));
    EXPECT_FAILURE(smem_shm_control_barrier(space), SMEM_NOT_CONNECTED, "rank 1");
    base[kSize] = 1; /* of rank 1; stays mapped here */
  }
  EXPECT(now() - began < kSeconds / 2.0);
  meet(members);
  return 0;
}

/* ---- what members agree on ---------------------------------------------------------------------
 */

enum { kEach = 20 };

static int take_number(smem_shm_t space, uint32_t limit) {
  uint32_t number = UINT32_MAX;
  EXPECT(smem_shm_atomic_alloc_value(space, limit, &number) == SMEM_OK);
  EXPECT(number < limit);
  EXPECT(atomic_fetch_add(&page->words[number], 1) == 0); /* nobody else has it */
  return 0;
}

static int numbers_are_unique(int rank) {
  const uint32_t limit = kEach * (uint32_t)members;
  const int last = members - 1;
  char* base = NULL;
  uint32_t number = 0;
  if (begin(rank) != 0) return 1;
  smem_shm_t space = create(0, rank, 0, &base);
  EXPECT(space != NULL);
  for (int i = 0; i < kEach; ++i)
    if (take_number(space, limit) != 0) return 1;
  meet(members);
  for (uint32_t i = 0; i < limit; ++i) EXPECT(page->words[i] == 1);
  EXPECT_FAILURE(smem_shm_atomic_alloc_value(space, limit, &number), SMEM_NO_RESOURCES, "taken");
  EXPECT_FAILURE(smem_shm_atomic_release_value(space, (int32_t)limit), SMEM_NOT_EXIST, "number");
  EXPECT_FAILURE(smem_shm_atomic_release_value(space, -1), SMEM_NOT_EXIST, "number");
  meet(members);
  if (rank == last) {
    /* Back one by one, and the lowest again. */
    for (uint32_t i = 0; i < limit; ++i)
      if (smem_shm_atomic_release_value(space, (int32_t)i) == SMEM_OK) {
        EXPECT_FAILURE(smem_shm_atomic_release_value(space, (int32_t)i), SMEM_NOT_EXIST, "number");
        EXPECT(smem_shm_atomic_alloc_value(space, limit, &number) == SMEM_OK && number == i);
      }
    atomic_store(&page->words[200], 1);
    pause();
  }
  await_word(200, 1);
  if (rank != 0) return 0;
  /* Those of the dead and of who has gone come back. */
  end_member(last);
  for (int i = 0; i < kEach * last; ++i)
    while (smem_shm_atomic_alloc_value(space, limit, &number) != SMEM_OK) {
      EXPECT(smem_get_last_err_code() == SMEM_NO_RESOURCES);
      sched_yield(); /* until the store has noticed */
    }
  return 0;
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

static int exits_are_told_once(int rank) {
  char* base = NULL;
  if (begin(rank) != 0) return 1;
  for (int round = 0; round < 2; ++round) { /* once in each space's life */
    smem_shm_t space = create(0, rank, 0, &base);
    EXPECT(space != NULL);
    atomic_store(&calls, 0);
    if (rank != 2) EXPECT(smem_shm_register_exit(space, note_exit) == SMEM_OK);
    if (rank != 2)
      EXPECT_FAILURE(smem_shm_register_exit(space, note_exit), SMEM_REPEAT_INVOKE, "already");
    EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
    if (rank == 1) smem_shm_global_exit(space, 7 + round);
    if (rank != 2) EXPECT(await_calls(1) == 7 + round);
    EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
    smem_shm_global_exit(space, 70); /* too late */
    EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
    /* Who comes late is told, too, and may end the space then. */
    if (rank == 2) {
      to_destroy = space;
      EXPECT(smem_shm_register_exit(space, destroy_at_exit) == SMEM_OK);
      EXPECT(await_calls(1) == 7 + round);
    }
    meet(members);
    EXPECT(calls == 1 && told == 7 + round);
    EXPECT(smem_shm_destroy(space, 0) == (rank == 2 ? SMEM_NOT_EXIST : SMEM_OK));
  }
  return 0;
}

/* ---- mistakes ----------------------------------------------------------------------------------
 */

static int sizes_must_agree(int rank) {
  char* base = NULL;
  void* gva = NULL;
  if (begin(rank) != 0) return 1;
  EXPECT(is_refused(
      smem_shm_create(0, 3, (uint32_t)rank, rank == 1 ? 8192 : 4096, SMEMS_DATA_OP_MTE, 0, &gva),
      SMEM_INVALID_PARAM, "rank 1 says 8192 bytes, rank 0 said 4096"));
  meet(members);
  if (rank != 2) /* two who disagree about how many they are */
    EXPECT(is_refused(
        smem_shm_create(0, rank == 1 ? 2 : 3, (uint32_t)rank, 4096, SMEMS_DATA_OP_MTE, 0, &gva),
        SMEM_INVALID_PARAM, "members"));
  meet(members);
  smem_shm_t space = create(0, rank, 4096, &base);
  EXPECT(space != NULL && check_memory(space, base, rank, 4096) == 0);
  return 0;
}

static int too_little_memory(int rank) {
  char* base = NULL;
  void* gva = NULL;
  if (begin(rank) != 0) return 1;
  if (rank == 1) setenv("MEMSPAN_MEMORY_LIMIT", "1m", 1);
  EXPECT(is_refused(smem_shm_create(0, (uint32_t)members, (uint32_t)rank, kSize + 8192,
                                    SMEMS_DATA_OP_MTE, 0, &gva),
                    SMEM_MALLOC_FAILED, "rank 1: the part of the space needs"));
  unsetenv("MEMSPAN_MEMORY_LIMIT");
  smem_shm_t space = create(0, rank, kSize + 8192, &base);
  EXPECT(space != NULL && check_memory(space, base, rank, kSize + 8192) == 0);
  return 0;
}

static int a_rank_is_one_process(int rank) {
  void* gva = NULL;
  smem_shm_config_t made = config(kSeconds, kSeconds);
  if (rank == 0 && begin(0) != 0) return 1;
  meet(members);
  if (rank == 1) {
    EXPECT_FAILURE(smem_shm_init(page->url, 2, 0, 0, &made), SMEM_RES_IN_USE, "rank 0 is taken");
    EXPECT_FAILURE(smem_shm_init(page->url, 3, 1, 0, &made), SMEM_INVALID_PARAM, "others said 2");
    if (begin(1) != 0) return 1;
  }
  meet(members);
  /* Both come as the same rank: one of them is told, and the other one meets it afterwards. */
  smem_shm_t space = smem_shm_create(0, 2, 0, 64, SMEMS_DATA_OP_MTE, 0, &gva);
  if (space == NULL) {
    EXPECT(is_failure(smem_get_last_err_code(), SMEM_DUPLICATED, "rank 0 is taken"));
    space = smem_shm_create(0, 2, 1, 64, SMEMS_DATA_OP_MTE, 0, &gva);
  }
  EXPECT(space != NULL && smem_shm_control_barrier(space) == SMEM_OK);
  EXPECT(is_refused(smem_shm_create(0, 2, 1, 64, SMEMS_DATA_OP_MTE, 0, &gva), SMEM_DUPLICATED,
                    "of that id"));
  return 0;
}

static int different_meetings_are_noticed(int rank) {
  char* base = NULL;
  char bytes[16] = {0}, all[16];
  if (begin(rank) != 0) return 1;
  smem_shm_t space = create(0, rank, 0, &base);
  EXPECT(space != NULL);
  if (rank == 0)
    EXPECT_FAILURE(smem_shm_control_barrier(space), SMEM_INVALID_PARAM,
                   "rank 1 came to an allgather");
  else
    EXPECT_FAILURE(smem_shm_control_allgather(space, bytes, 4, all, 8), SMEM_INVALID_PARAM,
                   "rank 0 came to a barrier");
  EXPECT_FAILURE(smem_shm_subgroup_allgather(space, "k", 2, (uint32_t)rank, bytes,
                                             rank == 0 ? 4 : 8, all, rank == 0 ? 8 : 16),
                 SMEM_INVALID_PARAM, "sent");
  EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
  return 0;
}

static int check_creation_arguments(void) {
  void* gva = NULL;
  const smem_shm_data_op_type mte = SMEMS_DATA_OP_MTE;
  EXPECT(is_refused(smem_shm_create(64, 1, 0, 8, mte, 0, &gva), SMEM_INVALID_PARAM,
                    "invalid id, id range is: [0, 63]"));
  EXPECT(is_refused(smem_shm_create(0, 1, 0, 8, mte, 0, NULL), SMEM_INVALID_PARAM,
                    "invalid param, gva is NULL"));
  EXPECT(is_refused(smem_shm_create(0, 0, 0, 8, mte, 0, &gva), SMEM_INVALID_PARAM,
                    "rankSize is invalid! input:0"));
  EXPECT(is_refused(smem_shm_create(0, 2, 0, 8, mte, 0, &gva), SMEM_INVALID_PARAM,
                    "rankSize is invalid! input:2"));
  EXPECT(is_refused(smem_shm_create(0, 1, 1, 8, mte, 0, &gva), SMEM_INVALID_PARAM,
                    "rankId is invalid! rank:1 size:1"));
  EXPECT(is_refused(smem_shm_create(0, 1, 0, (64ULL << 30) + 1, mte, 0, &gva), SMEM_INVALID_PARAM,
                    "symmetric size exceeded"));
  EXPECT(is_refused(smem_shm_create(0, 1, 0, 8, (smem_shm_data_op_type)8, 0, &gva),
                    SMEM_INVALID_PARAM, "dataOpType"));
  return 0;
}

static int check_meeting_arguments(smem_shm_t space) {
  static char long_key[65];
  char bytes[8], all[8];
  memset(long_key, 'k', sizeof long_key - 1);
  EXPECT_FAILURE(smem_shm_control_allgather(space, NULL, 8, all, 8), SMEM_INVALID_PARAM, "sendBuf");
  EXPECT_FAILURE(smem_shm_control_allgather(space, bytes, 8, NULL, 8), SMEM_INVALID_PARAM,
                 "recvBuf");
  EXPECT_FAILURE(smem_shm_control_allgather(space, bytes, 0, all, 0), SMEM_INVALID_PARAM,
                 "Invalid sendSize, sendSize must be 1~65536");
  EXPECT_FAILURE(smem_shm_control_allgather(space, bytes, 65537, all, 65537), SMEM_INVALID_PARAM,
                 "Invalid sendSize, sendSize must be 1~65536");
  EXPECT_FAILURE(smem_shm_control_allgather(space, bytes, 8, all, 7), SMEM_INVALID_PARAM,
                 "recvSize");
  EXPECT_FAILURE(smem_shm_subgroup_barrier(space, NULL, 1, 0), SMEM_INVALID_PARAM, "key is NULL");
  EXPECT_FAILURE(smem_shm_subgroup_barrier(space, "", 1, 0), SMEM_INVALID_PARAM, "key");
  EXPECT_FAILURE(smem_shm_subgroup_barrier(space, long_key, 1, 0), SMEM_INVALID_PARAM,
                 "key too long:64");
  EXPECT(smem_shm_subgroup_barrier(space, long_key + 1, 1, 0) == SMEM_OK);
  EXPECT_FAILURE(smem_shm_subgroup_barrier(space, "k", 2, 0), SMEM_INVALID_PARAM,
                 "rankSize is invalid! input:2 option:1");
  EXPECT_FAILURE(smem_shm_subgroup_barrier(space, "k", 1, 1), SMEM_INVALID_PARAM,
                 "rankId is invalid! rank:1 size:1");
  EXPECT_FAILURE(smem_shm_subgroup_allgather(space, "k", 1, 0, bytes, 8, all, 9),
                 SMEM_INVALID_PARAM, "recvSize");
  return 0;
}

static int check_other_arguments(smem_shm_t space) {
  uint32_t number = 0;
  EXPECT_FAILURE(smem_shm_topology_can_reach(space, 1, &number), SMEM_INVALID_PARAM, "remoteRank");
  EXPECT_FAILURE(smem_shm_topology_can_reach(space, 0, NULL), SMEM_INVALID_PARAM, "reachInfo");
  EXPECT_FAILURE(smem_shm_atomic_alloc_value(space, 1025, &number), SMEM_INVALID_PARAM,
                 "limit is too large");
  EXPECT_FAILURE(smem_shm_atomic_alloc_value(space, 0, &number), SMEM_INVALID_PARAM, "limit is 0");
  EXPECT_FAILURE(smem_shm_atomic_alloc_value(space, 1, NULL), SMEM_INVALID_PARAM, "retVal");
  EXPECT_FAILURE(smem_shm_register_exit(space, NULL), SMEM_INVALID_PARAM, "exit is NULL");
  EXPECT_FAILURE(smem_shm_set_extra_context(space, NULL, 8), SMEM_INVALID_PARAM, "context is NULL");
  EXPECT_FAILURE(smem_shm_set_extra_context(space, &number, 0), SMEM_INVALID_PARAM,
                 "size must be between 1~65536");
  EXPECT_FAILURE(smem_shm_set_extra_context(space, &number, 65537), SMEM_INVALID_PARAM,
                 "size must be between 1~65536");
  EXPECT_FAILURE(smem_shm_get_extra_context(space, &number, 4, NULL), SMEM_INVALID_PARAM, "size");
  EXPECT_FAILURE(smem_shm_get_extra_context(space, NULL, 4, &number), SMEM_INVALID_PARAM,
                 "context is NULL");
  return 0;
}

static int check_handles(void) {
  int here = 0;
  EXPECT_FAILURE(smem_shm_control_barrier(NULL), SMEM_INVALID_PARAM, "handle is NULL");
  EXPECT_FAILURE(smem_shm_control_barrier(&here), SMEM_NOT_EXIST, "input handle is invalid");
  EXPECT_FAILURE(smem_shm_destroy(NULL, 0), SMEM_INVALID_PARAM, "handle is NULL");
  EXPECT(smem_shm_get_global_rank(&here) == UINT32_MAX &&
         smem_shm_get_global_rank_size(NULL) == UINT32_MAX);
  return 0;
}

static int refuses_nonsense(int rank) {
  char* base = NULL;
  void* gva = NULL;
  int here = 0;
  smem_shm_config_t made = config(kSeconds, kSeconds), zero = config(0, 1);
  EXPECT(smem_shm_query_support_data_operation() == SMEMS_DATA_OP_MTE);
  EXPECT(is_refused(smem_shm_create(0, 1, 0, 8, SMEMS_DATA_OP_MTE, 0, &gva), SMEM_NOT_INIT,
                    "smem shm not initialized yet"));
  EXPECT_FAILURE(smem_shm_destroy(&here, 0), SMEM_NOT_INIT, "smem shm not initialized yet");
  EXPECT_FAILURE(smem_shm_config_init(NULL), SMEM_INVALID_PARAM, "config is null");
  EXPECT_FAILURE(smem_shm_init(NULL, 1, 0, 0, &made), SMEM_INVALID_PARAM, "storeURL is null");
  EXPECT_FAILURE(smem_shm_init("nowhere", 1, 0, 0, &made), SMEM_INVALID_PARAM, "nowhere");
  EXPECT_FAILURE(smem_shm_init(page->url, 0, 0, 0, &made), SMEM_INVALID_PARAM, "worldSize is 0");
  EXPECT_FAILURE(smem_shm_init(page->url, 1025, 0, 0, &made), SMEM_INVALID_PARAM,
                 "worldSize is too large");
  EXPECT_FAILURE(smem_shm_init(page->url, 2, 2, 0, &made), SMEM_INVALID_PARAM, "rankId is 2");
  EXPECT_FAILURE(smem_shm_init(page->url, 1, 0, 0, NULL), SMEM_INVALID_PARAM, "config is null");
  EXPECT_FAILURE(smem_shm_init(page->url, 1, 0, 0, &zero), SMEM_INVALID_PARAM,
                 "shmCreateTimeout is zero");
  if (begin(rank) != 0 || check_creation_arguments() != 0 || check_handles() != 0) return 1;
  smem_shm_t space = create(0, rank, 8, &base);
  EXPECT(space != NULL && check_meeting_arguments(space) == 0 && check_other_arguments(space) == 0);
  smem_shm_uninit(0);
  EXPECT_FAILURE(smem_shm_control_barrier(space), SMEM_NOT_INIT, "smem shm not initialized yet");
  return 0;
}

static int a_child_begins_anew(int rank) {
  char* base = NULL;
  if (begin(rank) != 0) return 1;
  smem_shm_t space = create(0, rank, 8, &base);
  EXPECT(space != NULL);
  const pid_t child = fork();
  if (child == 0) {
    int is_right = smem_shm_control_barrier(space) == SMEM_NOT_INIT;
    _exit(is_right ? 0 : 1);
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  EXPECT(smem_shm_control_barrier(space) == SMEM_OK);
  return 0;
}

int main(int argc, char** argv) {
  static const struct test_case cases[] = {
      {"works_alone", 1, works, 0},
      {"works_for_two", 2, works, 0},
      {"works_for_three", 3, works, 0},
      {"works_for_five", 5, works, 0},
      {"is_made_again", 3, is_made_again, 0},
      {"two_at_once", 3, two_at_once, 0},
      {"with_big_memory", 3, with_big_memory, 0},
      {"rank_0_hosts", 2, rank_0_hosts, 1},
      {"stays_in_step", 3, stays_in_step, 0},
      {"survives_a_death", 3, survives_a_death, 0},
      {"dies_in_creation", 4, dies_in_creation, 0},
      {"destroys_while_others_wait", 3, destroys_while_others_wait, 0},
      {"numbers_are_unique", 5, numbers_are_unique, 0},
      {"exits_are_told_once", 3, exits_are_told_once, 0},
      {"sizes_must_agree", 3, sizes_must_agree, 0},
      {"too_little_memory", 2, too_little_memory, 0},
      {"a_rank_is_one_process", 2, a_rank_is_one_process, 0},
      {"different_meetings_are_noticed", 2, different_meetings_are_noticed, 0},
      {"refuses_nonsense", 1, refuses_nonsense, 0},
      {"a_child_begins_anew", 1, a_child_begins_anew, 0},
      {NULL, 0, NULL, 0},
  };
  return run_case(argc, argv, cases);
}
