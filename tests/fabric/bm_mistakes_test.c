/* SPDX-License-Identifier: Apache-2.0
 * What Big Memory refuses, and memory that is not there, among real processes. Each case is a test
 * of its own. */
#define _GNU_SOURCE
#include <smem/host/smem_bm.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric/pools.h"
#include "support/forbidden_syscalls.h"

/* A local end that is unmapped, constant or no address at all is a mistake like another, for single
 * copies, batches and in the background; nobody dies and all else goes on. */
SCENARIO(wild_buffers_are_refused, 1, int number) {
  begin(number);
  smem_bm_t pool = plain_pool(1, kSize, 0);
  char* place = host_of(pool, number);
  char* gone = mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(gone != MAP_FAILED && munmap(gone + 4096, kSize - 4096) == 0);
  char* constant = mmap(NULL, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(constant != MAP_FAILED);
  REFUSES(copy(pool, gone, place, kSize, SMEMB_COPY_H2G, 0), "src: there is no memory at");
  REFUSES(copy(pool, place, gone + 4096, 8, SMEMB_COPY_G2H, 0), "dest: there is no memory at");
  REFUSES(copy(pool, place, constant, 8, SMEMB_COPY_G2H, 0), "may not be written");
  REFUSES(copy(pool, place, (void*)(uintptr_t)0x1234567812345678, 8, SMEMB_COPY_G2H, 0),
          "there is no memory");
  REFUSES(copy(pool, (void*)8, place, 8, SMEMB_COPY_AUTO, 0), "there is no memory at 0x8");
  /* Threads that begin now may have their stacks where nothing was. */
  char* closed = mmap(NULL, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(closed != MAP_FAILED);
  CHECK(copy(pool, closed, place, 64, SMEMB_COPY_H2G, ASYNC_COPY_FLAG) == SMEM_OK);
  REFUSES(smem_bm_wait(pool), "may not be read");

  enum { kCount = 5 };
  char bytes[kCount] = {1, 2, 3, 4, 5};
  void* from[kCount] = {bytes, bytes + 1, closed + 8192, bytes + 3, bytes + 4};
  void* to[kCount] = {place, place + 1, place + 2, place + 3, place + 4};
  uint64_t sizes[kCount] = {1, 1, 1, 1, 1};
  int32_t codes[kCount];
  smem_batch_copy_params batch = {from, to, sizes, kCount};
  smem_batch_copy_result results = {codes, kCount};
  memset(place, 0, 8);
  REFUSES(smem_bm_copy_batch(pool, &batch, SMEMB_COPY_H2G, 0), "element 2 of 5");
  CHECK(memcmp(place, "\1\2\0\0\0", kCount) == 0);
  FAILS(smem_bm_copy_batch_partial_succeed(pool, &batch, SMEMB_COPY_H2G, 0, &results),
        SMEM_PARTIAL_FAILED, "1 of 5 elements");
  CHECK(memcmp(place, "\1\2\0\4\5", kCount) == 0);
  CHECK(codes[2] == SMEM_INVALID_PARAM && codes[1] == SMEM_OK && codes[4] == SMEM_OK);
  CHECK(smem_bm_leave(pool, 0) == SMEM_OK);
}

/* Member 1's memory is a file of its own, which it makes smaller: whoever copies there is told, and
 * copies on once the memory is back. */
SCENARIO(memory_that_shrinks_is_told, 2, int number) {
  begin(number);
  const int memory = memfd_create("callers", MFD_CLOEXEC);
  CHECK(memory >= 0);
  smem_bm_create_option_t option = {.maxDramSize = kSize,
                                    .localDRAMSize = kSize,
                                    .dataOpType = SMEMB_DATA_OP_SDMA,
                                    .flags = SMEM_BM_FLAG_CREATE_WITH_SHM,
                                    .dramShmFd = memory};
  smem_bm_t pool = smem_bm_create2(3, &option);
  CHECK(pool != NULL && smem_bm_join(pool, 0, NULL) == SMEM_OK);
  static char bytes[kSize];
  meet(members);
  if (number == 0) CHECK(copy(pool, bytes, host_of(pool, 1), kSize, SMEMB_COPY_H2G, 0) == SMEM_OK);
  meet(members);
  if (number == 1) CHECK(ftruncate(memory, 4096) == 0);
  meet(members);
  FAILS(copy(pool, bytes, host_of(pool, 1), kSize, SMEMB_COPY_H2G, 0), SMEM_NOT_EXIST,
        "the memory of rank 1 at");
  FAILS(copy(pool, host_of(pool, 1) + 4096, bytes, 8, SMEMB_COPY_G2H, 0), SMEM_NOT_EXIST,
        "is gone: its owner has made it smaller");
  CHECK(copy(pool, bytes, host_of(pool, 1), 4096, SMEMB_COPY_H2G, 0) == SMEM_OK);
  meet(members);
  if (number == 1) CHECK(ftruncate(memory, kSize) == 0);
  meet(members);
  CHECK(copy(pool, bytes, host_of(pool, 1), kSize, SMEMB_COPY_H2G, 0) == SMEM_OK);
  close(memory);
  meet(members);
}

SCENARIO(layouts_must_agree, 2, int number) {
  begin(number);
  if (number == 0) CHECK(plain_pool(1, kSize, 0) != NULL);
  meet(members);
  if (number == 1) {
    REFUSES_TO_MAKE(smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, 2 * kSize, 0, 0),
                    "create BM entity(1) failed");
    REFUSES(smem_get_last_err_code(), "others have it of");
    /* The id is free again, and another pool is no neighbour of the first. */
    CHECK(smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0) != NULL);
    smem_bm_t other = smem_bm_create(2, 0, SMEMB_DATA_OP_SDMA, 2 * kSize, 0, 0);
    CHECK(other != NULL);
    smem_bm_uninit(0);
  }
  meet(members);
  /* Nobody has pool 2 any more, so that it may be another one. */
  if (number == 0) CHECK(smem_bm_create(2, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0) != NULL);
}

SCENARIO(a_rank_is_one_process, 2, int number) {
  const smem_bm_config_t made = config(0);
  if (number == 0) CHECK(smem_bm_init(page->url, 2, 0, &made) == SMEM_OK);
  meet(members);
  if (number == 1) {
    FAILS(smem_bm_init(page->url, 2, 0, &made), SMEM_RES_IN_USE, "rank 0 is taken by process");
    REFUSES(smem_bm_init(page->url, 3, 0, &made), "3 ranks");
    const smem_bm_config_t next = config(1);
    CHECK(smem_bm_init(page->url, 2, 0, &next) == SMEM_OK);
  }
  meet(members);
}

SCENARIO(refuses_nonsense, 1, int number) {
  smem_bm_config_t made = config(0);
  REFUSES(smem_bm_config_init(NULL), "config is null");
  REFUSES(smem_bm_init(page->url, 0, 0, &made), "worldSize is 0");
  REFUSES(smem_bm_init(page->url, 1025, 0, &made), "worldSize is too large");
  REFUSES(smem_bm_init(NULL, 1, 0, &made), "storeURL is null");
  REFUSES(smem_bm_init("udp://x:1", 1, 0, &made), "udp://x:1");
  REFUSES(smem_bm_init(page->url, 1, 0, NULL), "config is null");
  made.unifiedAddressSpace = false;
  REFUSES(smem_bm_init(page->url, 1, 0, &made), "unifiedAddressSpace must be true");
  made = config(0);
  made.initTimeout = 0;
  REFUSES(smem_bm_init(page->url, 1, 0, &made), "initTimeout is zero");
  made = config(5);
  REFUSES(smem_bm_init(page->url, 5, 0, &made), "rankId is 5");
  made = config(0);
  memset(made.hcomUrl, 'x', sizeof made.hcomUrl);
  REFUSES(smem_bm_init(page->url, 1, 0, &made), "hcomUrl has no end");
  made = config(0);
  made.initTimeout = 1;
  FAILS(smem_bm_init("tcp://127.0.0.1:1", 1, 0, &made), SMEM_TIMEOUT,
        "init bm entry manager failed");

  FAILS((int32_t)smem_bm_get_rank_id() == -1 ? smem_get_last_err_code() : 0, SMEM_NOT_INIT,
        "smem bm not initialized yet");
  /* What is wrong with the arguments is said first. */
  smem_copy_params wrong = {0};
  REFUSES(smem_bm_join(NULL, 0, NULL), "handle is NULL");
  FAILS(smem_bm_join(&made, 0, NULL), SMEM_NOT_INIT, "smem bm not initialized yet");
  REFUSES(smem_bm_copy(&made, NULL, SMEMB_COPY_AUTO, 0), "params is null");
  REFUSES(smem_bm_copy(&made, &wrong, SMEMB_COPY_BUTT, 0), "type invalid");
  REFUSES_TO_MAKE(smem_bm_create2(0, NULL), "option is null");
  MAKES_NOTHING(smem_bm_create(0, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0), SMEM_NOT_INIT,
                "not initialized");
  begin(0);
  REFUSES(smem_bm_join(NULL, 0, NULL), "handle is NULL");
  FAILS(smem_bm_join(&made, 0, NULL), SMEM_NOT_EXIST, "handle is invalid");
  smem_bm_destroy(NULL);
  CHECK(smem_bm_create2(0, NULL) == NULL && strstr(smem_get_last_err_msg(), "option is null"));
  static const struct {
    smem_bm_create_option_t option;
    const char* words;
  } bad[] = {
      {{.dataOpType = 1}, "maxMemorySize is 0"},
      {{.maxDramSize = 3ULL << 40, .localDRAMSize = 3ULL << 40, .dataOpType = 1},
       "local DRAM size exceeded"},
      {{.maxHbmSize = 65ULL << 30, .localHBMSize = 65ULL << 30, .dataOpType = 1},
       "local HBM size exceeded"},
      {{.maxDramSize = 1, .localDRAMSize = 2, .dataOpType = 1},
       "maxDramSize less than localMemorySize"},
      {{.maxHbmSize = 1, .localHBMSize = 2, .dataOpType = 1},
       "maxHBMSize less than localMemorySize"},
      {{.maxDramSize = 1, .dataOpType = 0}, "invalid opType"},
      {{.maxDramSize = 1, .dataOpType = 1, .flags = 1U << 31}, "flags are 0x80000000"},
      {{.maxDramSize = 1, .localDRAMSize = 1, .dataOpType = 1, .flags = 1U << 8, .dramShmFd = -1},
       "share memory flag set, but input fd invalid: -1"},
      {{.maxDramSize = 1, .localDRAMSize = 1, .dataOpType = 1, .flags = 1U << 8, .dramShmFd = 999},
       "input fd invalid: 999"},
      {{.maxDramSize = 1, .dataOpType = 1, .tag = "a b"}, "\"a b\" is not a tag"},
      {{.maxDramSize = 1, .dataOpType = 1, .tagOpInfo = "a:b"}, "allowed is tagA:OP:tagB"},
      {{.maxDramSize = 1, .dataOpType = 1, .tagOpInfo = "a:MTE:b"}, "has the operation \"MTE\""},
      {{.maxDramSize = 1, .localDRAMSize = 1, .dataOpType = 1, .flags = 0x80 | 100},
       "NUMA node 100"},
      {{.maxDramSize = 1ULL << 60, .dataOpType = 1}, "more addresses than pools may have"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    REFUSES_TO_MAKE(smem_bm_create2(9, &bad[i].option), bad[i].words);
  }
  smem_bm_t pool = smem_bm_create(9, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0);
  CHECK(pool != NULL);
  MAKES_NOTHING(smem_bm_create(9, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0), SMEM_DUPLICATED,
                "create BM entity(9) failed: -2006");
  REFUSES_TO_MAKE(smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_LOCAL_HOST, 0),
                  "input mem type is invalid, memType: 1");
  REFUSES_TO_MAKE(smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, 1), "peerRankId too large");

  char bytes[8] = {0};
  char* place = host_of(pool, 0);
  REFUSES(smem_bm_copy(pool, NULL, SMEMB_COPY_AUTO, 0), "params is null");
  REFUSES(copy(pool, NULL, place, 8, SMEMB_COPY_H2G, 0), "src is NULL");
  REFUSES(copy(pool, bytes, NULL, 8, SMEMB_COPY_G2H, 0), "dest is NULL");
  REFUSES(copy(pool, bytes, place, 0, SMEMB_COPY_H2G, 0), "size is 0");
  REFUSES(copy(pool, bytes, place, 8, SMEMB_COPY_BUTT, 0), "type invalid: 10");
  REFUSES(copy(pool, bytes, bytes, 4, SMEMB_COPY_AUTO, 0), "neither src nor dest");
  REFUSES(copy(pool, bytes, place, 8, SMEMB_COPY_G2G, 0), "src 0x");
  REFUSES(copy(pool, place, bytes, 8, SMEMB_COPY_H2G, 0), "dest 0x");
  REFUSES(copy(pool, bytes, place + kSize - 4, 8, SMEMB_COPY_H2G, 0), "not entirely in");
  void* one[1] = {bytes};
  smem_batch_copy_params batch = {one, one, NULL, 1};
  REFUSES(smem_bm_copy_batch(pool, &batch, SMEMB_COPY_AUTO, 0), "dataSizes is NULL");
  batch.batchSize = 0;
  batch.dataSizes = (const uint64_t*)bytes;
  REFUSES(smem_bm_copy_batch(pool, &batch, SMEMB_COPY_AUTO, 0), "batchSize is 0");
  CHECK(smem_bm_wait(pool) == SMEM_OK);

  REFUSES(smem_bm_register_user_mem(pool, 0, 1), "addr eq 0");
  REFUSES(smem_bm_register_user_mem(pool, 4096, 0), "size is 0");
  CHECK(smem_bm_register_user_mem(pool, 4096, 10000) == SMEM_OK);
  CHECK(smem_bm_register_user_mem(pool, 4096, 10000) == SMEM_OK);
  CHECK(smem_bm_register_user_mem(pool, 8192, 10000) == SMEM_OK);
  FAILS(smem_bm_register_user_mem(pool, 4096, 9), SMEM_RES_IN_USE, "10000 bytes");
  CHECK(smem_bm_unregister_user_mem(pool, 4096) == SMEM_OK);
  CHECK(smem_bm_unregister_user_mem(pool, 4096) == SMEM_OK);
  CHECK(smem_bm_register_user_mem(pool, 4096, 9) == SMEM_OK);
  smem_bm_destroy(pool);
  FAILS(smem_bm_leave(pool, 0), SMEM_NOT_EXIST, "handle is invalid");
}

/* A host with little memory: the failure names the sizes, and the id is free again. */
static _Atomic int lines;
static char last_line[kMostText];
static void count_line(int level, const char* line) {
  ++lines;
  snprintf(last_line, sizeof last_line, "%d %s", level, line);
}

/* As containers refuse it: a pool with a NUMA node works, and a warning says what its owner does
 * not get, unless the machine has one node. */
SCENARIO(mbind_may_be_refused, 2, int number) {
  char online[64] = "0";
  FILE* file = fopen("/sys/devices/system/node/online", "r");
  if (file != NULL) {
    CHECK(fgets(online, sizeof online, file) != NULL);
    fclose(file);
  }
  const int has_several = strpbrk(online, ",-") != NULL;
  const long mbind_number = SYS_mbind;
  CHECK(forbid_syscalls(&mbind_number, 1, number == 0 ? EPERM : ENOSYS) == 0);
  begin(number);
  CHECK(smem_set_extern_logger(count_line) == SMEM_OK && smem_set_log_level(2) == SMEM_OK);
  enum { kSaid = 1U << SMEM_BM_PERFORMANCE_MODE_FLAG_INDEX, kCallers = 0x7F };
  smem_bm_t pool = smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, kSize, 0, kSaid | kCallers);
  CHECK(pool != NULL);
  CHECK(lines == has_several);
  if (has_several) CHECK(strncmp(last_line, "2 ", 2) == 0 && strstr(last_line, "refuses mbind"));
  CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK);
  meet(members);
  char byte = (char)(number + 1);
  CHECK(copy(pool, &byte, host_of(pool, 1 - number), 1, SMEMB_COPY_H2G, 0) == SMEM_OK);
  meet(members);
  CHECK(load_byte(pool, host_of(pool, number)) == 2 - number);
  REFUSES_TO_MAKE(smem_bm_create(2, 0, SMEMB_DATA_OP_SDMA, kSize, 0, kSaid | 100), "NUMA node 100");
}

SCENARIO(too_little_memory, 1, int number) {
  setenv("MEMSPAN_MEMORY_LIMIT", "8M", 1);
  begin(number);
  for (int i = 0; i < 3; ++i) {
    MAKES_NOTHING(smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, 64 * kMiB, 0, 0), SMEM_MALLOC_FAILED,
                  "MEMSPAN_MEMORY_LIMIT");
  }
  CHECK(smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0) != NULL);
}
