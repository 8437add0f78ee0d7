/* SPDX-License-Identifier: Apache-2.0
 * A pool of KV blocks among real processes. With MEMSPAN_TEST_HOSTS=2 every second one is on
 * another simulated host. */
#include <memspan/kv_pool.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "fabric/pools.h"

enum { kShare = 8 * kMiB, kBlock = 40000, kPieces = 4, kPiece = kBlock / kPieces };

static memspan_kv_key_t key_of(uint64_t number) {
  memspan_kv_key_t key = {{0}};
  memcpy(key.bytes, &number, sizeof number);
  return key;
}

static smem_bm_t start(int number, uint64_t share) {
  begin(number);
  smem_bm_create_option_t option = {
      .maxDramSize = kShare, .localDRAMSize = share, .dataOpType = SMEMB_DATA_OP_SDMA};
  smem_bm_t pool = smem_bm_create2(1, &option);
  CHECK(pool != NULL);
  CHECK(memspan_kv_start(pool, 0) == SMEM_OK);
  CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK);
  return pool;
}

/* An entry's bytes in pieces that lie apart, as those of layers do. */
struct block {
  char bytes[kPieces][kPiece + 64];
  void* addresses[kPieces];
};
static const uint64_t sizes[kPieces] = {kPiece, kPiece, kPiece, kPiece};

static void aim(struct block* block) {
  for (int i = 0; i < kPieces; ++i) block->addresses[i] = block->bytes[i];
}

static int32_t put(smem_bm_t pool, uint64_t number) {
  static struct block block;
  aim(&block);
  for (int i = 0; i < kPieces; ++i) fill(block.bytes[i], kPiece, (int)number * kPieces + i);
  const memspan_kv_key_t key = key_of(number);
  int32_t result = -5;
  CHECK(memspan_kv_put(pool, &key, 1, block.addresses, sizes, kPieces, &result) == SMEM_OK);
  return result;
}

/* Whether it is there; what is there is right. */
static int get(smem_bm_t pool, uint64_t number) {
  static struct block block;
  memset(block.bytes, 0, sizeof block.bytes);
  aim(&block);
  const memspan_kv_key_t key = key_of(number);
  int32_t result = -5;
  CHECK(memspan_kv_get(pool, &key, 1, block.addresses, sizes, kPieces, &result) == SMEM_OK);
  if (result == MEMSPAN_KV_ABSENT) return 0;
  CHECK(result == MEMSPAN_KV_DONE);
  for (int i = 0; i < kPieces; ++i)
    CHECK(is_filled(block.bytes[i], kPiece, (int)number * kPieces + i));
  return 1;
}

static memspan_kv_stats_t stats_of(smem_bm_t pool) {
  memspan_kv_stats_t stats;
  CHECK(memspan_kv_stats(pool, &stats) == SMEM_OK);
  return stats;
}

static int are_all_near(void) {
  return getenv("MEMSPAN_TEST_HOSTS") == NULL;
}

SCENARIO(what_one_puts_all_find, 3, int number) {
  smem_bm_t pool = start(number, kShare);
  meet(members);
  for (uint64_t i = 0; i < 20; ++i) CHECK(put(pool, (uint64_t)number * 100 + i) == MEMSPAN_KV_DONE);
  meet(members);
  for (uint64_t of = 0; of < (uint64_t)members; ++of) {
    memspan_kv_key_t keys[21];
    uint64_t bytes[21];
    size_t found = 0;
    for (uint64_t i = 0; i <= 20; ++i) keys[i] = key_of(of * 100 + i);
    /* A member on another host that is slow to answer is left alone for a while. */
    do CHECK(memspan_kv_lookup(pool, keys, 21, bytes, &found) == SMEM_OK);
    while (found != 20 && !are_all_near() && usleep(10000) == 0);
    CHECK(found == 20 && bytes[0] == kBlock && bytes[20] == 0);
    CHECK(memspan_kv_lookup(pool, keys + 20, 1, NULL, &found) == SMEM_OK && found == 0);
    for (uint64_t i = 0; i < 20; ++i)
      while (!get(pool, of * 100 + i)) CHECK(!are_all_near() && usleep(10000) == 0);
    CHECK(!get(pool, of * 100 + 20));
  }
  const memspan_kv_stats_t stats = stats_of(pool);
  CHECK(stats.put >= 20 && stats.got == 60 && stats.missed >= 3 && stats.evicted == 0);
  CHECK(stats.got_bytes == 60 * kBlock && stats.capacity > 0);
  meet(members);
  /* Once is enough, on the same host; what came from another host is put here, too. */
  for (uint64_t i = 0; i < 20; ++i) CHECK(put(pool, i) == MEMSPAN_KV_PRESENT);
  if (members > 1 && number == 1) CHECK((stats.got_remote > 0) == !is_near(0, 1));
  meet(members);
  if (number == 0) {
    const memspan_kv_key_t key = key_of(5);
    size_t removed = 0;
    CHECK(memspan_kv_remove(pool, &key, 1, &removed) == SMEM_OK && removed == 1);
    if (is_near(0, 1)) CHECK(!get(pool, 5));
  }
  meet(members);
  smem_bm_uninit(0);
}

/* All of them together put much more than there is room for, and check all that they find. */
SCENARIO(under_pressure_what_is_found_is_right, 3, int number) {
  smem_bm_t pool = start(number, number == 2 ? 0 : kShare);
  meet(members);
  uint64_t found = 0, random = (uint64_t)number + 1;
  for (int i = 0; i < 4000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const uint64_t which = (random >> 33) % 700;
    if (get(pool, which)) {
      ++found;
    } else {
      const int32_t result = put(pool, which);
      CHECK(result == MEMSPAN_KV_DONE || result == MEMSPAN_KV_PRESENT);
    }
  }
  CHECK(found > 400);
  meet(members);
  CHECK(stats_of(pool).evicted > 0);
  CHECK(stats_of(pool).no_room == 0);
  meet(members);
  smem_bm_uninit(0);
}

/* One is killed again and again while it puts and reads; the others find nothing wrong, and lose no
 * slot by it. Member 0 gives the memory. */
SCENARIO(killed_in_the_middle_of_anything, 3, int number) {
  enum { kLives = 25, kVictim = 2 };
  smem_bm_t pool = start(number, number == 0 ? kShare : 0);
  if (number == kVictim) {
    /* Each life begins here. */
    atomic_fetch_add(&page->words[1], 1);
    for (uint64_t i = 0;; ++i) {
      const uint64_t which = i % 400;
      if (!get(pool, which)) put(pool, which);
      atomic_fetch_add(&page->words[2], 1);
    }
  }
  if (number == 1) {
    for (uint64_t life = 1; life <= kLives; ++life) {
      await_count(1, life);
      const uint64_t done = atomic_load(&page->words[2]);
      await_count(2, done + 20 + life);
      end_member(kVictim);
      for (uint64_t i = 0; i < 50; ++i) get(pool, i * 7);
      if (life < kLives) restart_member(kVictim);
    }
    atomic_store(&page->words[3], 1);
  } else {
    while (atomic_load(&page->words[3]) == 0)
      for (uint64_t i = 0; i < 400; ++i)
        if (!get(pool, i)) put(pool, i);
    /* Nothing is in use any more: every slot can be had. */
    const memspan_kv_stats_t stats = stats_of(pool);
    for (uint64_t i = 0; i < 3 * stats.slots; ++i) CHECK(put(pool, 10000 + i) == MEMSPAN_KV_DONE);
    CHECK(stats_of(pool).entries == stats.slots);
  }
  smem_bm_uninit(0);
}

/* A share ends with its member; the rest stays. */
SCENARIO(a_dead_members_share_is_lost_and_no_other, 3, int number) {
  smem_bm_t pool = start(number, kShare);
  meet(members);
  if (number == 0)
    for (uint64_t i = 0; i < 60; ++i) CHECK(put(pool, i) == MEMSPAN_KV_DONE);
  meet(members);
  if (number == 2) {
    atomic_store(&page->words[1], 1);
    for (;;) pause();
  }
  if (number == 0) {
    await_word(1, 1);
    end_member(2);
    /* Member 0 and, if it is near, member 1; with far members all of 0's lie in its own share. */
    while (is_near(0, 2) && stats_of(pool).shares != (is_near(0, 1) ? 2 : 1)) usleep(1000);
    uint64_t found = 0;
    for (uint64_t i = 0; i < 60; ++i) found += get(pool, i) ? 1 : 0;
    CHECK(found > 0 && (found < 60) == is_near(0, 2));
    for (uint64_t i = 0; i < 60; ++i)
      if (!get(pool, i)) CHECK(put(pool, i) == MEMSPAN_KV_DONE);
    for (uint64_t i = 0; i < 60; ++i) CHECK(get(pool, i));
  }
  meet(2);
  smem_bm_uninit(0);
}

SCENARIO(mistakes, 1, int number) {
  begin(number);
  smem_bm_create_option_t option = {
      .maxDramSize = kShare, .localDRAMSize = kMiB / 2, .dataOpType = SMEMB_DATA_OP_SDMA};
  smem_bm_t pool = smem_bm_create2(1, &option);
  const memspan_kv_key_t key = key_of(1);
  size_t found = 0;
  FAILS(memspan_kv_lookup(pool, &key, 1, NULL, &found), SMEM_NOT_STARTED, "memspan_kv_start");
  REFUSES(memspan_kv_start(pool, 0), "allowed are 1048576 and more");
  smem_bm_destroy(pool);
  option.localDRAMSize = kShare;
  pool = smem_bm_create2(1, &option);
  REFUSES(memspan_kv_start(pool, 33), "33 sections, allowed are up to");
  CHECK(memspan_kv_start(pool, 0) == SMEM_OK);
  FAILS(memspan_kv_start(pool, 0), SMEM_DUPLICATED, "already");
  CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK);
  REFUSES(memspan_kv_lookup(pool, NULL, 1, NULL, &found), "keys is NULL");
  REFUSES(memspan_kv_lookup(pool, &key, 1, NULL, NULL), "found is NULL");
  CHECK(memspan_kv_lookup(pool, NULL, 0, NULL, &found) == SMEM_OK && found == 0);
  static char bytes[kBlock];
  void* addresses[] = {bytes, (void*)4096};
  const uint64_t both[] = {100, 100};
  int32_t result = 7;
  REFUSES(memspan_kv_put(pool, &key, 1, addresses, both, 2, &result), "there is no memory");
  CHECK(result == MEMSPAN_KV_NO_ROOM);
  CHECK(memspan_kv_lookup(pool, &key, 1, NULL, &found) == SMEM_OK && found == 0);
  const uint64_t none[] = {0};
  REFUSES(memspan_kv_put(pool, &key, 1, addresses, none, 1, &result), "no bytes");
  REFUSES(memspan_kv_put(pool, &key, 1, NULL, both, 1, &result), "addresses is NULL");
  CHECK(memspan_kv_put(pool, &key, 1, addresses, both, 1, &result) == SMEM_OK);
  CHECK(result == MEMSPAN_KV_DONE);
  const uint64_t other[] = {101};
  REFUSES(memspan_kv_get(pool, &key, 1, addresses, other, 1, &result),
          "the entry has 100 bytes, and the pieces 101");
  CHECK(result == MEMSPAN_KV_ABSENT);
  const uint64_t much[] = {2 * kShare};
  CHECK(memspan_kv_put(pool, &key, 1, addresses, much, 1, &result) == SMEM_OK);
  CHECK(result == MEMSPAN_KV_PRESENT);
  const memspan_kv_key_t next = key_of(2);
  CHECK(memspan_kv_put(pool, &next, 1, addresses, much, 1, &result) == SMEM_OK);
  CHECK(result == MEMSPAN_KV_NO_ROOM);
  smem_bm_destroy(pool);
  FAILS(memspan_kv_stats(pool, NULL), SMEM_NOT_EXIST, "names no pool");
  smem_bm_uninit(0);
}
