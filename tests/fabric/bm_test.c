/* SPDX-License-Identifier: Apache-2.0
 * Big Memory among real processes: copies of all kinds, and pools of all kinds. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/pools.h"

static void check_addresses(smem_bm_t pool, int rank) {
  atomic_store(&page->words[rank], (uint64_t)(uintptr_t)host_of(pool, 0));
  atomic_store(&page->words[members + rank], (uint64_t)(uintptr_t)device_of(pool, 0));
  meet(members);
  for (int i = 0; i < members; ++i) {
    CHECK(page->words[i] == page->words[0]);
    CHECK(page->words[members + i] == page->words[members]);
    CHECK(host_of(pool, i) == host_of(pool, 0) + (size_t)i * 4 * kMiB);
    CHECK(smem_bm_get_rank_id_by_gva(pool, host_of(pool, i) + 5) == (uint32_t)i);
    CHECK(smem_bm_get_rank_id_by_gva(pool, device_of(pool, i)) == (uint32_t)i);
  }
  CHECK(smem_bm_get_rank_id_by_gva(pool, host_of(pool, 0) - 1) == UINT32_MAX);
  CHECK(smem_bm_get_rank_id_by_gva(pool, device_of(pool, members - 1) + kSize) == UINT32_MAX);
  CHECK(host_of(pool, members) == NULL);
  CHECK(smem_bm_get_local_mem_size_by_mem_type(pool, SMEM_MEM_TYPE_HOST) == kSize + 5);
  CHECK(smem_bm_get_local_mem_size_by_mem_type(pool, SMEM_MEM_TYPE_LOCAL_DEVICE) == kSize);
}

/* Every member's part is written and read directly by its right neighbour. */
static void check_loads_and_stores(smem_bm_t pool, int rank) {
  static char bytes[kSize + 5];
  char* theirs = host_of(pool, (rank + 1) % members);
  load_bytes(pool, bytes, theirs, sizeof bytes);
  for (size_t i = 0; i < sizeof bytes; ++i) CHECK(bytes[i] == 0);
  meet(members);
  fill(bytes, sizeof bytes, rank);
  store_bytes(pool, theirs, bytes, sizeof bytes);
  meet(members);
  CHECK(is_filled(host_of(pool, rank), kSize + 5, (rank + members - 1) % members));
  meet(members);
}

/* One after the other, each rank sends its bytes a way through both spaces of others. */
static void check_types(smem_bm_t pool, int rank) {
  enum { kBytes = 100003 };
  static char mine[kBytes], back[kBytes];
  const int left = (rank + members - 1) % members, right = (rank + 1) % members;
  for (int turn = 0; turn < members; ++turn) {
    meet(members);
    if (turn != rank) continue;
    fill(mine, kBytes, rank + 100);
    CHECK(copy(pool, mine, host_of(pool, rank) + 1, kBytes, SMEMB_COPY_H2G, 0) == SMEM_OK);
    CHECK(copy(pool, host_of(pool, rank) + 1, device_of(pool, right) + 3, kBytes, SMEMB_COPY_G2G,
               0) == SMEM_OK);
    /* Both ends are others'. */
    CHECK(copy(pool, device_of(pool, right) + 3, host_of(pool, left) + 7, kBytes, SMEMB_COPY_AUTO,
               0) == SMEM_OK);
    CHECK(copy(pool, host_of(pool, left) + 7, back, kBytes, SMEMB_COPY_GH2H, 0) == SMEM_OK);
    CHECK(copy(pool, back, device_of(pool, left), kBytes, SMEMB_COPY_L2G, 0) == SMEM_OK);
    CHECK(copy(pool, device_of(pool, left), back, kBytes, SMEMB_COPY_G2L, 0) == SMEM_OK);
    CHECK(copy(pool, back, host_of(pool, right), kBytes, SMEMB_COPY_L2GH, 0) == SMEM_OK);
    CHECK(copy(pool, host_of(pool, right), back, kBytes, SMEMB_COPY_GH2L, 0) == SMEM_OK);
    CHECK(copy(pool, back, host_of(pool, right) + 9, kBytes, SMEMB_COPY_H2GH, 0) == SMEM_OK);
    memset(back, 0, kBytes);
    CHECK(copy(pool, host_of(pool, right) + 9, back, kBytes, SMEMB_COPY_G2H, 0) == SMEM_OK);
    CHECK(is_filled(back, kBytes, rank + 100));
    /* The own slice as the local end. */
    fill(host_of(pool, rank) + 1, kBytes, rank + 100);
    CHECK(copy(pool, host_of(pool, rank) + 1, device_of(pool, right), kBytes, SMEMB_COPY_L2G, 0) ==
          SMEM_OK);
    load_bytes(pool, back, device_of(pool, right), kBytes);
    CHECK(is_filled(back, kBytes, rank + 100));
  }
  meet(members);
}

/* Elements of many sizes, to and from all ranks, in both directions, and in the background. */
static void check_batches(smem_bm_t pool, int rank, uint32_t flags) {
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
  CHECK(smem_bm_copy_batch(pool, &params, SMEMB_COPY_AUTO, flags) == SMEM_OK);
  CHECK(smem_bm_wait(pool) == SMEM_OK);
  for (int i = 0; i < kCount; ++i) memset(mine[i], 0, sizeof mine[i]);
  smem_batch_copy_params back = {to, from, bytes, kCount};
  CHECK(smem_bm_copy_batch(pool, &back, SMEMB_COPY_G2H, flags) == SMEM_OK);
  CHECK(smem_bm_wait(pool) == SMEM_OK);
  for (int i = 0; i < kCount; ++i) CHECK(is_filled(mine[i], bytes[i], i + rank));
  meet(members);
}

static void works(int number) {
  begin(-1);
  const int rank = (int)smem_bm_get_rank_id();
  CHECK(rank >= 0 && rank < members);
  smem_bm_create_option_t option = {.maxDramSize = 3 * kMiB,
                                    .maxHbmSize = kSize,
                                    .localDRAMSize = kSize + 5,
                                    .localHBMSize = kSize,
                                    .dataOpType = SMEMB_DATA_OP_HOST_TCP,
                                    .flags = (uint32_t)number % 2 << 7 | 0x7f};
  smem_bm_t pool = smem_bm_create2(7, &option);
  CHECK(pool != NULL);
  void* begin_of_mine = NULL;
  CHECK(smem_bm_join(pool, 0, &begin_of_mine) == SMEM_OK);
  CHECK(begin_of_mine == host_of(pool, rank));
  CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK);
  meet(members);
  for (int i = 0; i < members; ++i) {
    char byte;
    CHECK(copy(pool, host_of(pool, i), &byte, 1, SMEMB_COPY_G2H, 0) == SMEM_OK);
  }
  check_addresses(pool, rank);
  check_loads_and_stores(pool, rank);
  check_types(pool, rank);
  check_batches(pool, rank, 0);
  check_batches(pool, rank, ASYNC_COPY_FLAG);
  CHECK(smem_bm_leave(pool, 0) == SMEM_OK);
  smem_bm_destroy(pool);
  smem_bm_uninit(0);
  CHECK(smem_bm_get_rank_id() == UINT32_MAX);
}
SCENARIO(works_alone, 1, int number) {
  works(number);
}
SCENARIO(works_for_two, 2, int number) {
  works(number);
}
SCENARIO(works_for_five, 5, int number) {
  works(number);
}

/* Contributions of all sizes, none too; bounds hold to the byte. */
SCENARIO(contributions_differ, 4, int number) {
  begin(number);
  smem_bm_create_option_t option = {.maxDramSize = 1 * kMiB,
                                    .localDRAMSize = (uint64_t)number * 1000,
                                    .dataOpType = SMEMB_DATA_OP_SDMA};
  smem_bm_t pool = smem_bm_create2(0xffffffff, &option);
  CHECK(pool != NULL && smem_bm_join(pool, 0, NULL) == SMEM_OK);
  meet(members);
  static char bytes[10000];
  for (int rank = 0; rank < members; ++rank) {
    const size_t given = (size_t)rank * 1000;
    if (given > 0)
      CHECK(copy(pool, host_of(pool, rank), bytes, given, SMEMB_COPY_AUTO, 0) == SMEM_OK);
    REFUSES(copy(pool, host_of(pool, rank), bytes, given + 1, SMEMB_COPY_AUTO, 0),
            "not entirely in the");
    REFUSES(copy(pool, bytes, host_of(pool, rank) + given, 1, SMEMB_COPY_AUTO, 0), "dest");
  }
  REFUSES_TO_MAKE(device_of(pool, 0), "no memory of that type");
  meet(members);
  /* A part of a batch that is wrong is named, and with the other call the rest is copied. */
  if (number == 0) {
    void* from[3] = {bytes, bytes, bytes};
    void* to[3] = {host_of(pool, 1), host_of(pool, 1) + 999, host_of(pool, 1) + 500};
    uint64_t sizes[3] = {10, 2, 10};
    int32_t codes[3] = {1, 1, 1};
    smem_batch_copy_params batch = {from, to, sizes, 3};
    smem_batch_copy_result results = {codes, 3};
    REFUSES(smem_bm_copy_batch(pool, &batch, SMEMB_COPY_H2G, 0), "element 1 of 3");
    FAILS(smem_bm_copy_batch_partial_succeed(pool, &batch, SMEMB_COPY_H2G, 0, &results),
          SMEM_PARTIAL_FAILED, "1 of 3 elements");
    CHECK(codes[0] == SMEM_OK && codes[1] == SMEM_INVALID_PARAM && codes[2] == SMEM_OK);
    CHECK(smem_bm_copy_batch(pool, &batch, SMEMB_COPY_H2G, ASYNC_COPY_FLAG) == SMEM_OK);
    REFUSES(smem_bm_wait(pool), "element 1 of 3");
    CHECK(smem_bm_wait(pool) == SMEM_OK);
  }
  meet(members);
}

/* The DRAM of each is a memfd of its own, which it can also map elsewhere. */
SCENARIO(lies_in_the_callers_memory, 2, int number) {
  begin(number);
  const int memory = memfd_create("callers", MFD_CLOEXEC);
  CHECK(memory >= 0 && ftruncate(memory, 4096) == 0);
  smem_bm_create_option_t option = {.maxDramSize = kSize,
                                    .localDRAMSize = kSize,
                                    .dataOpType = SMEMB_DATA_OP_SDMA,
                                    .flags = SMEM_BM_FLAG_CREATE_WITH_SHM,
                                    .dramShmFd = memory};
  smem_bm_t pool = smem_bm_create2(3, &option);
  CHECK(pool != NULL && smem_bm_join(pool, 0, NULL) == SMEM_OK);
  const char* elsewhere = mmap(NULL, kSize, PROT_READ, MAP_SHARED, memory, 0);
  CHECK(elsewhere != MAP_FAILED);
  meet(members);
  static char bytes[kSize];
  fill(bytes, kSize, number);
  const int right = (number + 1) % members;
  CHECK(copy(pool, bytes, host_of(pool, right), kSize, SMEMB_COPY_H2GH, 0) == SMEM_OK);
  meet(members);
  CHECK(is_filled(elsewhere, kSize, (number + members - 1) % members));
  close(memory);
  meet(members);
}

SCENARIO(tags_rule, 3, int number) {
  begin(number);
  smem_bm_create_option_t option = {
      .maxDramSize = kSize, .localDRAMSize = kSize, .dataOpType = SMEMB_DATA_OP_SDMA};
  snprintf(option.tag, sizeof option.tag, "%s",
           number == 0   ? "prefill"
           : number == 1 ? "decode"
                         : "other");
  snprintf(option.tagOpInfo, sizeof option.tagOpInfo,
           "decode:HOST_RDMA:prefill,decode:DEVICE_SDMA:x");
  smem_bm_t pool = smem_bm_create2(3, &option);
  CHECK(pool != NULL && smem_bm_join(pool, 0, NULL) == SMEM_OK);
  meet(members);
  char byte = 0;
  for (int rank = 0; rank < members; ++rank) {
    const int32_t code = copy(pool, host_of(pool, rank), &byte, 1, SMEMB_COPY_G2H, 0);
    if (rank == number || (rank < 2 && number < 2))
      CHECK(code == SMEM_OK);
    else
      FAILS(code, SMEM_NOT_CONNECTED, "tagOpInfo");
  }
  meet(members);
}

/* Ranks that the processes choose, the store hosted by rank 0, which is there last. */
LONE_SCENARIO(rank_0_hosts, 3, int number) {
  smem_bm_config_t made = config(number);
  made.startConfigStoreServer = true;
  if (number == 0) await_word(0, (uint64_t)members - 1);
  atomic_fetch_add(&page->words[0], 1);
  CHECK(smem_bm_init(page->url, (uint32_t)members, 0, &made) == SMEM_OK);
  CHECK(smem_bm_get_rank_id() == (uint32_t)number);
  CHECK(smem_bm_init("nonsense", 0, 0, NULL) == SMEM_OK);
  smem_bm_t pool = plain_pool(2, kSize, 0);
  meet(members);
#if defined(__SANITIZE_THREAD__)
  /* It cannot see that the neighbour knew of the mapping here before it met us. */
  char byte;
  CHECK(copy(pool, host_of(pool, (number + 1) % members), &byte, 1, SMEMB_COPY_G2H, 0) == SMEM_OK);
#endif
  const char mine = (char)number;
  store_bytes(pool, host_of(pool, (number + 1) % members), &mine, 1);
  meet(members);
  CHECK(*host_of(pool, number) == (char)((number + members - 1) % members));
  meet(members);
  smem_bm_uninit(0);
  meet(members);
}

/* Ranks by arrival, the store hosted by whoever is first. */
LONE_SCENARIO(somebody_hosts, 4, int number) {
  smem_bm_config_t made = config(-1);
  made.startConfigStoreServer = true;
  CHECK(smem_bm_init(page->url, (uint32_t)members, 0, &made) == SMEM_OK);
  const uint32_t rank = smem_bm_get_rank_id();
  CHECK(rank < (uint32_t)members);
  CHECK(atomic_fetch_add(&page->words[rank], 1) == 0);
  smem_bm_t pool = plain_pool(2, 0, kSize);
  meet(members);
  char byte = 1;
  for (int i = 0; i < members; ++i)
    CHECK(copy(pool, &byte, device_of(pool, i) + rank, 1, SMEMB_COPY_L2G, 0) == SMEM_OK);
  meet(members);
  for (int i = 0; i < members; ++i) CHECK(load_byte(pool, device_of(pool, (int)rank) + i) == 1);
  meet(members);
}

/* Another listener has the store's port at first, until the members have tried. Members on other
 * hosts cannot have its address: there member 0, which has the listener, may host as well. */
LONE_SCENARIO(hosts_once_the_port_is_free, 3, int number) {
  char host[64];
  uint16_t port = 0;
  CHECK(sscanf(page->url, "tcp://%63[^:]:%hu", host, &port) == 2);
  smem_bm_config_t made = config(-1);
  made.startConfigStoreServer = number != 0 || strcmp(host, "127.0.0.1") != 0;
  if (number == 0) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    CHECK(inet_pton(AF_INET, host, &address.sin_addr) == 1);
    const int on = 1; /* as the one who chose the port has bound it */
    CHECK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    CHECK(bind(listener, (struct sockaddr*)&address, sizeof address) == 0);
    CHECK(listen(listener, 8) == 0);
    atomic_store(&page->words[0], 1);
    for (int tries = 1; tries < members; ++tries) CHECK(close(accept(listener, NULL, NULL)) == 0);
    close(listener);
  }
  await_word(0, 1);
  CHECK(smem_bm_init(page->url, (uint32_t)members, 0, &made) == SMEM_OK);
  meet(members);
  smem_bm_uninit(0);
  meet(members);
}

/* Everybody makes its pools in an order of its own; each has its addresses. */
SCENARIO(pools_in_any_order, 4, int number) {
  enum { kPools = 12 };
  begin(number);
  smem_bm_t pools[kPools];
  for (int i = 0; i < kPools; ++i) {
    const int id = (i * 5 + number * 7) % kPools;
    pools[id] = plain_pool((uint32_t)id, (uint64_t)(id % 4) * 1000 * 1000, 1000);
    CHECK(pools[id] != NULL);
  }
  for (int id = 0; id < kPools; ++id)
    atomic_fetch_add(&page->words[id], (uint64_t)(uintptr_t)device_of(pools[id], 0));
  meet(members);
  for (int id = 0; id < kPools; ++id) {
    CHECK(page->words[id] == (uint64_t)members * (uint64_t)(uintptr_t)device_of(pools[id], 0));
    char* place = device_of(pools[id], (number + 1) % members);
    char byte = (char)(id + 1);
    CHECK(copy(pools[id], &byte, place + 999, 1, SMEMB_COPY_L2G, 0) == SMEM_OK);
  }
  meet(members);
  for (int id = 0; id < kPools; ++id)
    CHECK(load_byte(pools[id], device_of(pools[id], number) + 999) == id + 1);
  meet(members);
}

/* A child of fork has nothing of its parent's, and may begin anew. */
SCENARIO(a_child_begins_anew, 1, int number) {
  members = 2; /* it, and its child */
  begin(number);
  smem_bm_t pool = plain_pool(1, kSize, 0);
  const pid_t child = fork();
  if (child == 0) {
    if (smem_bm_leave(pool, 0) != SMEM_NOT_INIT) _exit(1);
    begin(-1);
    if (smem_bm_get_rank_id() != 1) _exit(2);
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(copy(pool, host_of(pool, 0), host_of(pool, 0) + 64, 32, SMEMB_COPY_G2G, 0) == SMEM_OK);
}
