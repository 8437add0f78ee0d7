/* SPDX-License-Identifier: Apache-2.0
 * Big Memory among real processes: how long copies wait, and what does not wait for copies. */
#define _GNU_SOURCE
#include <memspan/pool.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "fabric/pools.h"

/* ---- a copy that does not end: the last page of its source is given when word 15 says so */

enum { kHeldBytes = 1 << 18, kHeldPage = 1 << 16, kInCopy = 14, kGoOn = 15 };
static char* held_source;

static void give_the_page(int number, siginfo_t* info, void* context) {
  (void)context;
  const char* const page_at = held_source + kHeldBytes - kHeldPage;
  const char* const fault = info->si_addr;
  if (fault < page_at || fault >= page_at + kHeldPage) {
    signal(number, SIG_DFL);
    return;
  }
  atomic_store(&page->words[kInCopy], 1);
  await_word(kGoOn, 1);
  mprotect(held_source, kHeldBytes, PROT_READ | PROT_WRITE);
}

static void make_held_source(void) {
  struct sigaction action = {.sa_flags = SA_SIGINFO};
  action.sa_sigaction = give_the_page;
  held_source = mmap(NULL, kHeldBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(held_source != MAP_FAILED && sigaction(SIGSEGV, &action, NULL) == 0);
  fill(held_source, kHeldBytes, 7);
  CHECK(mprotect(held_source + kHeldBytes - kHeldPage, kHeldPage, PROT_NONE) == 0);
}

static void* copy_held_source(void* pool) {
  CHECK(copy(pool, held_source, host_of(pool, 2), kHeldBytes, SMEMB_COPY_H2G, 0) == SMEM_OK);
  return NULL;
}

/* Member 0 copies to member 2, which leaves and joins again meanwhile. Events of other pools, joins
 * and leaves do not wait for the copy; copies to member 2 do. */
SCENARIO(nothing_waits_for_a_copy, 3, int number) {
  begin(number);
  smem_bm_t pool = plain_pool(1, kSize, 0);
  smem_bm_t other = smem_bm_create(2, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0);
  if (number != 1) CHECK(smem_bm_join(other, 0, NULL) == SMEM_OK);
  fill(host_of(pool, number), kHeldBytes, number);
  meet(members);
  pthread_t thread;
  if (number == 0) {
    make_held_source();
    CHECK(pthread_create(&thread, NULL, copy_held_source, pool) == 0);
    await_word(kInCopy, 1);
  }
  meet(members);
  double before = now();
  if (number == 2) {
    CHECK(smem_bm_leave(pool, 0) == SMEM_OK);
    CHECK(now() - before < 5);
  }
  meet(members);
  if (number == 1) CHECK(smem_bm_join(other, 0, NULL) == SMEM_OK);
  before = now();
  static char bytes[kHeldBytes];
  if (number == 0) {
    CHECK(memspan_pool_wait_rank(other, 1, 20000) == SMEM_OK);
    CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK);
    CHECK(smem_bm_join(other, 0, NULL) == SMEM_OK);
    CHECK(copy(other, bytes, host_of(other, 1), 1000, SMEMB_COPY_H2G, 0) == SMEM_OK);
    FAILS(copy(pool, bytes, host_of(pool, 2), 1000, SMEMB_COPY_H2G, 0), SMEM_NOT_CONNECTED,
          "rank 2 is not in the pool");
    CHECK(now() - before < 5);
  }
  meet(members);
  before = now();
  if (number == 2) {
    CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK);
    CHECK(now() - before < 5);
  }
  meet(members);
  if (number == 0) {
    FAILS(memspan_pool_wait_rank(pool, 2, 100), SMEM_TIMEOUT, "rank 2 joined again");
    /* So does a leave of this process. */
    before = now();
    CHECK(smem_bm_leave(pool, 0) == SMEM_OK);
    CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK);
    CHECK(now() - before < 5);
    atomic_store(&page->words[kGoOn], 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(memspan_pool_wait_rank(pool, 2, 20000) == SMEM_OK);
    CHECK(copy(pool, host_of(pool, 2), bytes, kHeldBytes, SMEMB_COPY_G2H, 0) == SMEM_OK);
    CHECK(is_filled(bytes, kHeldBytes, 7));
  }
  meet(members);
  /* Nothing is held any more: the leave does not wait. */
  before = now();
  if (number == 2) CHECK(smem_bm_leave(pool, 0) == SMEM_OK && now() - before < 1);
  meet(members);
}

enum { kLimit = 2 }; /* s */

/* In all members when it returns. */
static smem_bm_t impatient_pool(int number, uint64_t bytes) {
  smem_bm_config_t impatient = config(number);
  impatient.controlOperationTimeout = kLimit;
  CHECK(smem_bm_init(page->url, (uint32_t)members, 0, &impatient) == SMEM_OK);
  smem_bm_t pool = plain_pool(1, bytes, 0);
  meet(members);
  return pool;
}

/* smem_bm_wait names the rank of a copy that does not end. */
SCENARIO(a_wait_for_copies_names_the_rank, 3, int number) {
  smem_bm_t pool = impatient_pool(number, kSize);
  if (number == 0) {
    make_held_source();
    CHECK(copy(pool, held_source, host_of(pool, 2), kHeldBytes, SMEMB_COPY_H2G, ASYNC_COPY_FLAG) ==
          SMEM_OK);
    FAILS(smem_bm_wait(pool), SMEM_TIMEOUT, "rank 2");
    atomic_store(&page->words[kGoOn], 1);
    CHECK(smem_bm_wait(pool) == SMEM_OK);
  }
  meet(members);
}

/* ---- a stopped member of another host, and one limit for each call */

enum { kLarge = 40 << 20, kMany = 5000 };

static smem_batch_copy_params* pieces(char* from, char* to, size_t bytes, uint32_t count) {
  static void *sources[kMany], *targets[kMany];
  static uint64_t sizes[kMany];
  static smem_batch_copy_params batch = {sources, targets, sizes, 0};
  batch.batchSize = count;
  for (uint32_t i = 0; i < count; ++i) {
    sources[i] = from + i * bytes;
    targets[i] = to + i * bytes;
    sizes[i] = bytes;
  }
  return &batch;
}

/* The code of its last piece. */
static int32_t copy_some(smem_bm_t pool, char* from, char* to) {
  enum { kSome = 8 };
  int32_t codes[kSome];
  smem_batch_copy_result results = {codes, kSome};
  smem_bm_copy_batch_partial_succeed(pool, pieces(from, to, kMiB, kSome), SMEMB_COPY_H2G, 0,
                                     &results);
  return codes[kSome - 1];
}

static int32_t then_wait(int32_t code, smem_bm_t pool) {
  CHECK(code == SMEM_OK);
  return smem_bm_wait(pool);
}

enum { kCalls = 8 };
static int32_t call_number(int which, smem_bm_t pool, char* bytes) {
  char* const mine = host_of(pool, 0);
  char* const far = host_of(pool, 1);
  switch (which) {
    case 0:
      return copy(pool, bytes, far, kLarge, SMEMB_COPY_H2G, 0);
    case 1:
      return copy(pool, far, bytes, kLarge, SMEMB_COPY_G2H, 0);
    case 2:
      return copy(pool, mine, far, kLarge, SMEMB_COPY_G2G, 0);
    case 3:
      return copy(pool, far, far + kLarge, kLarge, SMEMB_COPY_G2G, 0);
    case 4:
      return smem_bm_copy_batch(pool, pieces(bytes, far, 1000, kMany), SMEMB_COPY_H2G, 0);
    case 5:
      return smem_bm_copy_batch(pool, pieces(far, bytes, 1000, kMany), SMEMB_COPY_G2H, 0);
    case 6:
      return copy_some(pool, bytes, far);
    default:
      return then_wait(copy(pool, bytes, far, kLarge, SMEMB_COPY_H2G, ASYNC_COPY_FLAG), pool);
  }
}

SCENARIO(a_call_has_one_limit, 2, int number) {
  smem_bm_t pool = impatient_pool(number, 2 * (size_t)kLarge);
  if (number == 1) {
    await_word(0, 1);
    return;
  }
  const int may_be_lost = getenv("MEMSPAN_TEST_HOLDERS") != NULL;
  char* const bytes = calloc(1, kLarge);
  CHECK(copy(pool, bytes, host_of(pool, 1), 8, SMEMB_COPY_H2G, 0) == SMEM_OK); /* connects */
  CHECK(kill(page->members[1], SIGSTOP) == 0);
  for (int which = 0; which < kCalls; ++which) {
    const double before = now();
    const int32_t code = call_number(which, pool, bytes);
    const double took = now() - before;
    if (is_near(0, 1)) {
      CHECK(code == SMEM_OK);
      continue;
    }
    fprintf(stderr, "call %d: code %d after %.2f s\n", which, code, took);
    /* Between real hosts it is lost after some seconds. */
    CHECK(code == SMEM_TIMEOUT || (may_be_lost && code == SMEM_NOT_CONNECTED));
    CHECK(strstr(smem_get_last_err_msg(), "rank 1") != NULL && took < 1.75 * kLimit);
    CHECK(code != SMEM_TIMEOUT || took >= kLimit - 0.1);
  }
  CHECK(kill(page->members[1], SIGCONT) == 0);
  while (smem_bm_wait(pool) != SMEM_OK) {
  }
  atomic_store(&page->words[0], 1);
  free(bytes);
}

/* Elements of ranks that answer are copied, whoever does not. */
SCENARIO(a_stopped_rank_spares_the_others, 4, int number) {
  enum { kPieces = 6 };
  smem_bm_t pool = impatient_pool(number, kSize);
  if (number == 0) {
    static char bytes[kPieces * 1000];
    void *sources[kPieces], *targets[kPieces];
    uint64_t sizes[kPieces];
    int32_t codes[kPieces];
    fill(bytes, sizeof bytes, 5);
    for (int i = 0; i < kPieces; ++i) {
      sources[i] = bytes + i * 1000;
      targets[i] = host_of(pool, i % 3 + 1) + i * 1000;
      sizes[i] = 1000;
    }
    smem_batch_copy_params batch = {sources, targets, sizes, kPieces};
    smem_batch_copy_result results = {codes, kPieces};
    CHECK(kill(page->members[1], SIGSTOP) == 0);
    const double before = now();
    smem_bm_copy_batch_partial_succeed(pool, &batch, SMEMB_COPY_H2G, 0, &results);
    CHECK(now() - before < 1.75 * kLimit);
    CHECK(kill(page->members[1], SIGCONT) == 0);
    for (int i = 0; i < kPieces; ++i)
      CHECK(codes[i] == (i % 3 == 0 && !is_near(0, 1) ? SMEM_TIMEOUT : SMEM_OK));
  }
  meet(members);
  if (number > 1)
    for (int i = number - 1; i < kPieces; i += 3) {
      static char all[kPieces * 1000];
      fill(all, sizeof all, 5);
      CHECK(memcmp(host_of(pool, number) + i * 1000, all + i * 1000, 1000) == 0);
    }
  meet(members);
}
