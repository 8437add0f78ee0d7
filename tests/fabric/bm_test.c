/* SPDX-License-Identifier: Apache-2.0
 * Big Memory among real processes. Each case is a test of its own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <smem/host/smem_bm.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pools.h"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- everything that works among members that are there ----------------------------------------
 */

static int check_addresses(smem_bm_t pool, int rank) {
  atomic_store(&page->words[rank], (uint64_t)(uintptr_t)host_of(pool, 0));
  atomic_store(&page->words[members + rank], (uint64_t)(uintptr_t)device_of(pool, 0));
  meet(members);
  for (int i = 0; i < members; ++i) {
    EXPECT(page->words[i] == page->words[0]);
    EXPECT(page->words[members + i] == page->words[members]);
    EXPECT(host_of(pool, i) == host_of(pool, 0) + (size_t)i * 4 * kMiB);
    EXPECT(smem_bm_get_rank_id_by_gva(pool, host_of(pool, i) + 5) == (uint32_t)i);
    EXPECT(smem_bm_get_rank_id_by_gva(pool, device_of(pool, i)) == (uint32_t)i);
  }
  EXPECT(smem_bm_get_rank_id_by_gva(pool, host_of(pool, 0) - 1) == UINT32_MAX);
  EXPECT(smem_bm_get_rank_id_by_gva(pool, device_of(pool, members - 1) + kSize) == UINT32_MAX);
  EXPECT(host_of(pool, members) == NULL);
  EXPECT(smem_bm_get_local_mem_size_by_mem_type(pool, SMEM_MEM_TYPE_HOST) == kSize + 5);
  EXPECT(smem_bm_get_local_mem_size_by_mem_type(pool, SMEM_MEM_TYPE_LOCAL_DEVICE) == kSize);
  return 0;
}

/* Every member's part is written and read directly by its right neighbour. */
static int check_loads_and_stores(smem_bm_t pool, int rank) {
  char* theirs = host_of(pool, (rank + 1) % members);
  for (size_t i = 0; i < kSize + 5; ++i) EXPECT(theirs[i] == 0);
  meet(members);
  fill(theirs, kSize + 5, rank);
  meet(members);
  EXPECT(is_filled(host_of(pool, rank), kSize + 5, (rank + members - 1) % members));
  meet(members);
  return 0;
}

/* One after the other, each rank sends its bytes a way through both spaces of others. */
static int check_types(smem_bm_t pool, int rank) {
  enum { kBytes = 100003 };
  static char mine[kBytes], back[kBytes];
  const int left = (rank + members - 1) % members, right = (rank + 1) % members;
  for (int turn = 0; turn < members; ++turn) {
    meet(members);
    if (turn != rank) continue;
    fill(mine, kBytes, rank + 100);
    EXPECT(copy(pool, mine, host_of(pool, rank) + 1, kBytes, SMEMB_COPY_H2G, 0) == SMEM_OK);
    EXPECT(copy(pool, host_of(pool, rank) + 1, device_of(pool, right) + 3, kBytes, SMEMB_COPY_G2G,
                0) == SMEM_OK);
    /* Both ends are others'. */
    EXPECT(copy(pool, device_of(pool, right) + 3, host_of(pool, left) + 7, kBytes, SMEMB_COPY_AUTO,
                0) == SMEM_OK);
    EXPECT(copy(pool, host_of(pool, left) + 7, back, kBytes, SMEMB_COPY_GH2H, 0) == SMEM_OK);
    EXPECT(copy(pool, back, device_of(pool, left), kBytes, SMEMB_COPY_L2G, 0) == SMEM_OK);
    EXPECT(copy(pool, device_of(pool, left), back, kBytes, SMEMB_COPY_G2L, 0) == SMEM_OK);
    EXPECT(copy(pool, back, host_of(pool, right), kBytes, SMEMB_COPY_L2GH, 0) == SMEM_OK);
    EXPECT(copy(pool, host_of(pool, right), back, kBytes, SMEMB_COPY_GH2L, 0) == SMEM_OK);
    EXPECT(copy(pool, back, host_of(pool, right) + 9, kBytes, SMEMB_COPY_H2GH, 0) == SMEM_OK);
    memset(back, 0, kBytes);
    EXPECT(copy(pool, host_of(pool, right) + 9, back, kBytes, SMEMB_COPY_G2H, 0) == SMEM_OK);
    EXPECT(is_filled(back, kBytes, rank + 100));
    /* The own slice as the local end. */
    fill(host_of(pool, rank) + 1, kBytes, rank + 100);
    EXPECT(copy(pool, host_of(pool, rank) + 1, device_of(pool, right), kBytes, SMEMB_COPY_L2G, 0) ==
           SMEM_OK);
    EXPECT(is_filled(device_of(pool, right), kBytes, rank + 100));
  }
  meet(members);
  return 0;
}

/* Elements of many sizes, to and from all ranks, in both directions, and in the background. */
static int check_batches(smem_bm_t pool, int rank, uint32_t flags) {
  enum { kCount = 300 };
  static char mine[kCount][700];
  void *from[kCount], *to[kCount];
  uint64_t bytes[kCount];
  for (int i = 0; i < kCount; ++i) {
    char* place = device_of(pool, i % members) + (size_t)rank * kCount * 700 + (size_t)i * 700;
    fill(mine[i], sizeof mine[i], i + rank);
    from[i] = mine[i];
    to[i] = place;
    bytes[i] = 1 + (uint64_t)(i * 13) % 700;
  }
  smem_batch_copy_params params = {from, to, bytes, kCount};
  EXPECT(smem_bm_copy_batch(pool, &params, SMEMB_COPY_AUTO, flags) == SMEM_OK);
  EXPECT(smem_bm_wait(pool) == SMEM_OK);
  for (int i = 0; i < kCount; ++i) memset(mine[i], 0, sizeof mine[i]);
  smem_batch_copy_params back = {to, from, bytes, kCount};
  EXPECT(smem_bm_copy_batch(pool, &back, SMEMB_COPY_G2H, flags) == SMEM_OK);
  EXPECT(smem_bm_wait(pool) == SMEM_OK);
  for (int i = 0; i < kCount; ++i) EXPECT(is_filled(mine[i], bytes[i], i + rank));
  meet(members);
  return 0;
}

static int works(int number) {
  if (begin(-1) != 0) return 1;
  const int rank = (int)smem_bm_get_rank_id();
  EXPECT(rank >= 0 && rank < members);
  smem_bm_create_option_t option = {.maxDramSize = 3 * kMiB,
                                    .maxHbmSize = kSize,
                                    .localDRAMSize = kSize + 5,
                                    .localHBMSize = kSize,
                                    .dataOpType = SMEMB_DATA_OP_HOST_TCP,
                                    .flags = (uint32_t)number % 2 << 7 | 0x7f};
  smem_bm_t pool = smem_bm_create2(7, &option);
  EXPECT(pool != NULL);
  void* begin_of_mine = NULL;
  EXPECT(smem_bm_join(pool, 0, &begin_of_mine) == SMEM_OK);
  EXPECT(begin_of_mine == host_of(pool, rank));
  EXPECT(smem_bm_join(pool, 0, NULL) == SMEM_OK);
  meet(members);
  for (int i = 0; i < members; ++i) {
    char byte;
    EXPECT(copy(pool, host_of(pool, i), &byte, 1, SMEMB_COPY_G2H, 0) == SMEM_OK);
  }
  if (check_addresses(pool, rank) || check_loads_and_stores(pool, rank) ||
      check_types(pool, rank) || check_batches(pool, rank, 0) ||
      check_batches(pool, rank, ASYNC_COPY_FLAG))
    return 1;
  EXPECT(smem_bm_leave(pool, 0) == SMEM_OK);
  smem_bm_destroy(pool);
  smem_bm_uninit(0);
  EXPECT(smem_bm_get_rank_id() == UINT32_MAX);
  return 0;
}

/* ---- coming and going ---------------------------------------------------------------------------
 */

static int comes_and_goes(int number) {
  if (begin(number) != 0) return 1;
  smem_bm_t pool = plain_pool(1, kSize, 0);
  meet(members);
  const int last = members - 1;
  static char bytes[1000];
  for (int round = 0; round < 20; ++round) {
    if (number == last) {
      EXPECT(smem_bm_leave(pool, 0) == SMEM_OK);
      /* The own memory is there all the same. */
      fill(host_of(pool, number), 1000, round);
      EXPECT_FAILURE(copy(pool, host_of(pool, 0), bytes, 1000, SMEMB_COPY_G2H, 0),
                     SMEM_NOT_CONNECTED, "has joined");
      EXPECT_FAILURE(smem_bm_leave(pool, 0), SMEM_NOT_STARTED, "has not joined");
    }
    meet(members);
    if (number != last)
      EXPECT_FAILURE(copy(pool, host_of(pool, last), bytes, 1000, SMEMB_COPY_G2H, 0),
                     SMEM_NOT_CONNECTED, "is not in the pool");
    meet(members);
    if (number == last) EXPECT(smem_bm_join(pool, 0, NULL) == SMEM_OK);
    meet(members);
    EXPECT(copy(pool, host_of(pool, last), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
    EXPECT(is_filled(bytes, 1000, round));
    meet(members);
  }
  return 0;
}

/* Joins and leaves while the others copy; what is copied is whole or refused. */
static void* keep_copying(void* argument) {
  smem_bm_t pool = argument;
  static _Thread_local char bytes[64 * 1024];
  uint64_t wrong = 0;
  while (atomic_load(&page->words[0]) == 0) {
    const int32_t code =
        copy(pool, host_of(pool, members - 1), bytes, sizeof bytes, SMEMB_COPY_G2H, 0);
    if (code == SMEM_OK)
      wrong += !is_filled(bytes, sizeof bytes, 5);
    else
      wrong += code != SMEM_NOT_CONNECTED;
  }
  return (void*)(uintptr_t)wrong;
}

static int churns(int number) {
  if (begin(number) != 0) return 1;
  smem_bm_t pool = plain_pool(1, kSize, 0);
  fill(host_of(pool, number), 64 * 1024, 5);
  meet(members);
  if (number == members - 1) {
    for (int round = 0; round < 100; ++round) {
      EXPECT(smem_bm_leave(pool, 0) == SMEM_OK);
      EXPECT(smem_bm_join(pool, 0, NULL) == SMEM_OK);
    }
    atomic_store(&page->words[0], 1);
    return 0;
  }
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) EXPECT(pthread_create(&threads[i], NULL, keep_copying, pool) == 0);
  for (int i = 0; i < 2; ++i) {
    void* wrong = NULL;
    pthread_join(threads[i], &wrong);
    EXPECT(wrong == NULL);
  }
  return 0;
}

/* Member 2 is killed; the others go on, notice it at once, and a new process takes its rank. */
static int survives_a_death(int number) {
  const int is_reborn = number == 2 && atomic_load(&page->words[9]) == 1;
  if (begin(number) != 0) return 1;
  smem_bm_t pool = plain_pool(1, kSize, 0);
  fill(host_of(pool, number), 1000, number + is_reborn * 50);
  if (is_reborn) {
    meet(members);
    meet(members);
    return 0;
  }
  meet(members);
  if (number == 2)
    for (;;) pause();
  static char bytes[1000];
  EXPECT(copy(pool, host_of(pool, 2), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  EXPECT(is_filled(bytes, 1000, 2));
  meet(members - 1);
  if (number == 0) end_member(2);
  const double killed = now();
  while (copy(pool, host_of(pool, 2), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK)
    EXPECT(now() - killed < 1);
  EXPECT(smem_get_last_err_code() == SMEM_NOT_CONNECTED);
  EXPECT(strstr(smem_get_last_err_msg(), "rank 2") != NULL);
  EXPECT(copy(pool, host_of(pool, 1 - number), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  meet(members - 1);
  if (number == 0) {
    atomic_store(&page->words[9], 1);
    restart_member(2);
  }
  meet(members);
  EXPECT(copy(pool, host_of(pool, 2), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  EXPECT(is_filled(bytes, 1000, 52));
  meet(members);
  return 0;
}

/* Member 0 is stopped while the others join: they are not held up, and it has its place later. */
static int a_stuck_member_delays_nobody(int number) {
  if (begin(number) != 0) return 1;
  smem_bm_t pool = smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0);
  EXPECT(pool != NULL);
  static char bytes[1000];
  if (number == 0) {
    EXPECT(smem_bm_join(pool, 0, NULL) == SMEM_OK);
    fill(host_of(pool, 0), 1000, 3);
    meet(members);
    await_word(0, 1);
    meet(members);
    return 0;
  }
  meet(members);
  if (number == 1) {
    EXPECT(kill(page->members[0], SIGSTOP) == 0);
    atomic_store(&page->words[1], 1);
  }
  await_word(1, 1);
  const double before = now();
  EXPECT(smem_bm_join(pool, 0, NULL) == SMEM_OK);
  EXPECT(now() - before < 5);
  meet(members - 1);
  const int other = number == 1 ? 2 : 1;
  EXPECT(copy(pool, host_of(pool, other), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  meet(members - 1);
  if (number == 1) {
    EXPECT(kill(page->members[0], SIGCONT) == 0);
    atomic_store(&page->words[0], 1);
  }
  EXPECT(copy(pool, host_of(pool, 0), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  EXPECT(is_filled(bytes, 1000, 3));
  meet(members);
  return 0;
}

/* The store is killed: those who have each other go on, and what needs the store fails at once. */
static int goes_on_without_the_store(int number) {
  if (begin(number) != 0) return 1;
  smem_bm_t pool = plain_pool(1, kSize, 0);
  smem_bm_t apart = smem_bm_create(2, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0);
  EXPECT(apart != NULL);
  fill(host_of(pool, number), 1000, number);
  meet(members);
  static char bytes[1000];
  const int other = (number + 1) % members;
  EXPECT(copy(pool, host_of(pool, other), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  meet(members);
  if (number == 0) end_store();
  meet(members);
  const double before = now();
  EXPECT(smem_bm_join(apart, 0, NULL) == SMEM_NOT_CONNECTED);
  EXPECT(smem_bm_create(3, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0) == NULL);
  EXPECT(smem_get_last_err_code() == SMEM_NOT_CONNECTED);
  memset(bytes, 0, sizeof bytes);
  EXPECT(copy(pool, host_of(pool, other), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  EXPECT(is_filled(bytes, 1000, other));
  meet(members);
  smem_bm_uninit(0);
  EXPECT(now() - before < 5);
  return 0;
}

/* ---- kinds of pools -----------------------------------------------------------------------------
 */

/* Contributions of all sizes, none too; bounds hold to the byte. */
static int contributions_differ(int number) {
  if (begin(number) != 0) return 1;
  smem_bm_create_option_t option = {.maxDramSize = 1 * kMiB,
                                    .localDRAMSize = (uint64_t)number * 1000,
                                    .dataOpType = SMEMB_DATA_OP_SDMA};
  smem_bm_t pool = smem_bm_create2(0xffffffff, &option);
  EXPECT(pool != NULL && smem_bm_join(pool, 0, NULL) == SMEM_OK);
  meet(members);
  static char bytes[10000];
  for (int rank = 0; rank < members; ++rank) {
    const size_t given = (size_t)rank * 1000;
    if (given > 0)
      EXPECT(copy(pool, host_of(pool, rank), bytes, given, SMEMB_COPY_AUTO, 0) == SMEM_OK);
    EXPECT_FAILURE(copy(pool, host_of(pool, rank), bytes, given + 1, SMEMB_COPY_AUTO, 0),
                   SMEM_INVALID_PARAM, "not wholly in the");
    EXPECT_FAILURE(copy(pool, bytes, host_of(pool, rank) + given, 1, SMEMB_COPY_AUTO, 0),
                   SMEM_INVALID_PARAM, "dest");
  }
  EXPECT(device_of(pool, 0) == NULL);
  EXPECT_FAILURE(smem_get_last_err_code(), SMEM_INVALID_PARAM, "no memory of that type");
  meet(members);
  /* A part of a batch that is wrong is named, and with the other call the rest is copied. */
  if (number == 0) {
    void* from[3] = {bytes, bytes, bytes};
    void* to[3] = {host_of(pool, 1), host_of(pool, 1) + 999, host_of(pool, 1) + 500};
    uint64_t sizes[3] = {10, 2, 10};
    int32_t codes[3] = {1, 1, 1};
    smem_batch_copy_params batch = {from, to, sizes, 3};
    smem_batch_copy_result results = {codes, 3};
    EXPECT_FAILURE(smem_bm_copy_batch(pool, &batch, SMEMB_COPY_H2G, 0), SMEM_INVALID_PARAM,
                   "element 1 of 3");
    EXPECT_FAILURE(smem_bm_copy_batch_partial_succeed(pool, &batch, SMEMB_COPY_H2G, 0, &results),
                   SMEM_PARTIAL_FAILED, "1 of 3 elements");
    EXPECT(codes[0] == SMEM_OK && codes[1] == SMEM_INVALID_PARAM && codes[2] == SMEM_OK);
    EXPECT(smem_bm_copy_batch(pool, &batch, SMEMB_COPY_H2G, ASYNC_COPY_FLAG) == SMEM_OK);
    EXPECT_FAILURE(smem_bm_wait(pool), SMEM_INVALID_PARAM, "element 1 of 3");
    EXPECT(smem_bm_wait(pool) == SMEM_OK);
  }
  meet(members);
  return 0;
}

/* The DRAM of each is a memfd of its own, which it can also map elsewhere. */
static int lies_in_the_callers_memory(int number) {
  if (begin(number) != 0) return 1;
  const int memory = memfd_create("callers", MFD_CLOEXEC);
  EXPECT(memory >= 0 && ftruncate(memory, 4096) == 0);
  smem_bm_create_option_t option = {.maxDramSize = kSize,
                                    .localDRAMSize = kSize,
                                    .dataOpType = SMEMB_DATA_OP_SDMA,
                                    .flags = SMEM_BM_FLAG_CREATE_WITH_SHM,
                                    .dramShmFd = memory};
  smem_bm_t pool = smem_bm_create2(3, &option);
  EXPECT(pool != NULL && smem_bm_join(pool, 0, NULL) == SMEM_OK);
  const char* elsewhere = mmap(NULL, kSize, PROT_READ, MAP_SHARED, memory, 0);
  EXPECT(elsewhere != MAP_FAILED);
  meet(members);
  static char bytes[kSize];
  fill(bytes, kSize, number);
  const int right = (number + 1) % members;
  EXPECT(copy(pool, bytes, host_of(pool, right), kSize, SMEMB_COPY_H2GH, 0) == SMEM_OK);
  meet(members);
  EXPECT(is_filled(elsewhere, kSize, (number + members - 1) % members));
  close(memory);
  meet(members);
  return 0;
}

static int tags_rule(int number) {
  if (begin(number) != 0) return 1;
  smem_bm_create_option_t option = {
      .maxDramSize = kSize, .localDRAMSize = kSize, .dataOpType = SMEMB_DATA_OP_SDMA};
  snprintf(option.tag, sizeof option.tag, "%s",
           number == 0   ? "prefill"
           : number == 1 ? "decode"
                         : "other");
  snprintf(option.tagOpInfo, sizeof option.tagOpInfo,
           "decode:HOST_RDMA:prefill,decode:DEVICE_SDMA:x");
  smem_bm_t pool = smem_bm_create2(3, &option);
  EXPECT(pool != NULL && smem_bm_join(pool, 0, NULL) == SMEM_OK);
  meet(members);
  char byte = 0;
  for (int rank = 0; rank < members; ++rank) {
    const int32_t code = copy(pool, host_of(pool, rank), &byte, 1, SMEMB_COPY_G2H, 0);
    if (rank == number || (rank < 2 && number < 2))
      EXPECT(code == SMEM_OK);
    else
      EXPECT_FAILURE(code, SMEM_NOT_CONNECTED, "tagOpInfo");
  }
  meet(members);
  return 0;
}

/* Ranks that the processes choose, the store hosted by rank 0, which is there last. */
static int rank_0_hosts(int number) {
  smem_bm_config_t made = config(number);
  made.startConfigStoreServer = true;
  if (number == 0) await_word(0, (uint64_t)members - 1);
  atomic_fetch_add(&page->words[0], 1);
  EXPECT(smem_bm_init(page->url, (uint32_t)members, 0, &made) == SMEM_OK);
  EXPECT(smem_bm_get_rank_id() == (uint32_t)number);
  EXPECT(smem_bm_init("nonsense", 0, 0, NULL) == SMEM_OK);
  smem_bm_t pool = plain_pool(2, kSize, 0);
  meet(members);
#if defined(__SANITIZE_THREAD__)
  /* It cannot see that the neighbour knew of the mapping here before it met us. */
  char byte;
  EXPECT(copy(pool, host_of(pool, (number + 1) % members), &byte, 1, SMEMB_COPY_G2H, 0) == SMEM_OK);
#endif
  *host_of(pool, (number + 1) % members) = (char)number;
  meet(members);
  EXPECT(*host_of(pool, number) == (char)((number + members - 1) % members));
  meet(members);
  smem_bm_uninit(0);
  meet(members);
  return 0;
}

/* Ranks by arrival, the store hosted by whoever is first. */
static int somebody_hosts(int number) {
  (void)number;
  smem_bm_config_t made = config(-1);
  made.startConfigStoreServer = true;
  EXPECT(smem_bm_init(page->url, (uint32_t)members, 0, &made) == SMEM_OK);
  const uint32_t rank = smem_bm_get_rank_id();
  EXPECT(rank < (uint32_t)members);
  EXPECT(atomic_fetch_add(&page->words[rank], 1) == 0);
  smem_bm_t pool = plain_pool(2, 0, kSize);
  meet(members);
  char byte = 1;
  for (int i = 0; i < members; ++i)
    EXPECT(copy(pool, &byte, device_of(pool, i) + rank, 1, SMEMB_COPY_L2G, 0) == SMEM_OK);
  meet(members);
  for (int i = 0; i < members; ++i) EXPECT(device_of(pool, (int)rank)[i] == 1);
  meet(members);
  return 0;
}

/* Everybody makes its pools in an order of its own; each has its addresses. */
static int pools_in_any_order(int number) {
  enum { kPools = 12 };
  if (begin(number) != 0) return 1;
  smem_bm_t pools[kPools];
  for (int i = 0; i < kPools; ++i) {
    const int id = (i * 5 + number * 7) % kPools;
    pools[id] = plain_pool((uint32_t)id, (uint64_t)(id % 4) * 1000 * 1000, 1000);
    EXPECT(pools[id] != NULL);
  }
  for (int id = 0; id < kPools; ++id)
    atomic_fetch_add(&page->words[id], (uint64_t)(uintptr_t)device_of(pools[id], 0));
  meet(members);
  for (int id = 0; id < kPools; ++id) {
    EXPECT(page->words[id] == (uint64_t)members * (uint64_t)(uintptr_t)device_of(pools[id], 0));
    char* place = device_of(pools[id], (number + 1) % members);
    char byte = (char)(id + 1);
    EXPECT(copy(pools[id], &byte, place + 999, 1, SMEMB_COPY_L2G, 0) == SMEM_OK);
  }
  meet(members);
  for (int id = 0; id < kPools; ++id) EXPECT(device_of(pools[id], number)[999] == id + 1);
  meet(members);
  return 0;
}

/* A child of fork has nothing of its parent's, and may begin anew. */
static int a_child_begins_anew(int number) {
  members = 2; /* it, and its child */
  if (begin(number) != 0) return 1;
  smem_bm_t pool = plain_pool(1, kSize, 0);
  const pid_t child = fork();
  if (child == 0) {
    if (smem_bm_leave(pool, 0) != SMEM_NOT_INIT) _exit(1);
    if (begin(-1) != 0 || smem_bm_get_rank_id() != 1) _exit(2);
    _exit(0);
  }
  int status = 1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  EXPECT(copy(pool, host_of(pool, 0), host_of(pool, 0) + 64, 32, SMEMB_COPY_G2G, 0) == SMEM_OK);
  return 0;
}

int main(int argc, char** argv) {
  static const struct test_case cases[] = {
      {"works_alone", 1, works, 0},
      {"works_for_two", 2, works, 0},
      {"works_for_five", 5, works, 0},
      {"comes_and_goes", 3, comes_and_goes, 0},
      {"churns", 3, churns, 0},
      {"survives_a_death", 3, survives_a_death, 0},
      {"a_stuck_member_delays_nobody", 3, a_stuck_member_delays_nobody, 0},
      {"goes_on_without_the_store", 3, goes_on_without_the_store, 0},
      {"contributions_differ", 4, contributions_differ, 0},
      {"lies_in_the_callers_memory", 2, lies_in_the_callers_memory, 0},
      {"tags_rule", 3, tags_rule, 0},
      {"rank_0_hosts", 3, rank_0_hosts, 1},
      {"somebody_hosts", 4, somebody_hosts, 1},
      {"pools_in_any_order", 4, pools_in_any_order, 0},
      {"a_child_begins_anew", 1, a_child_begins_anew, 0},
      {NULL, 0, NULL, 0}};
  return run_case(argc, argv, cases);
}
