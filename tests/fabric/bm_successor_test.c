/* SPDX-License-Identifier: Apache-2.0
 * Big Memory among real processes: the rank of a member that still runs is given to a successor. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/pools.h"

/* Rank 2 is the old member, and on a host with rank 0, which owns the memory. */
enum { kOwner = 0, kOld = 2, kLarge = 40 * kMiB, kBytes = 64 * 1024, kPieces = 8, kOldSeed = 7 };
enum { kNewSeed = 9, kFlooded = 4 * kMiB };
/* Words of the page. */
enum { kIsFlooding, kCut, kIsCut, kTurn, kIsReborn };

static int port_of(const struct sockaddr_storage* address) {
  return ntohs(((const struct sockaddr_in*)address)->sin_port);
}

static int is_etcd(void) {
  return strncmp(page->url, "etcd", 4) == 0;
}

/* Ends this process's connections with the store. */
static int cut_store(void) {
  const int store_port = atoi(strrchr(page->url, ':') + 1);
  int cut = 0;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    if (getpeername(descriptor, (struct sockaddr*)&peer, &length) == 0 &&
        peer.ss_family == AF_INET && port_of(&peer) == store_port &&
        shutdown(descriptor, SHUT_RDWR) == 0)
      ++cut;
  }
  return cut;
}

/* Copies to the owner's memory until a copy is refused. */
static void* flood(void* pool) {
  static char bytes[kBytes];
  fill(bytes, sizeof bytes, kOldSeed);
  const double end = now() + 30;
  while (copy(pool, bytes, host_of(pool, kOwner) + kFlooded, sizeof bytes, SMEMB_COPY_H2G, 0) ==
         SMEM_OK) {
    atomic_store(&page->words[kIsFlooding], 1);
    CHECK(now() < end);
  }
  CHECK(smem_get_last_err_code() == SMEM_NOT_CONNECTED);
  return NULL;
}

#define LOSES(call) FAILS(call, SMEM_NOT_CONNECTED, "lost its rank 2")

/* Every way to copy to the owner's memory, and from it. */
static void expect_refusals(smem_bm_t pool) {
  char* const mine = malloc(kLarge);
  fill(mine, kLarge, kOldSeed);
  char* const host = host_of(pool, kOwner);
  char* const device = device_of(pool, kOwner);
  LOSES(copy(pool, mine, host, 8, SMEMB_COPY_H2G, 0));
  LOSES(copy(pool, mine, host, kLarge, SMEMB_COPY_H2G, 0));
  LOSES(copy(pool, mine, device, kBytes, SMEMB_COPY_L2G, 0));
  LOSES(copy(pool, mine, host, kBytes, SMEMB_COPY_AUTO, 0));
  LOSES(copy(pool, host_of(pool, kOld), host, kBytes, SMEMB_COPY_G2G, 0));
  LOSES(copy(pool, host, mine, kBytes, SMEMB_COPY_G2H, 0));
  LOSES(copy(pool, host, host_of(pool, kOld), kLarge, SMEMB_COPY_G2G, 0));
  void* from[kPieces];
  void* to[kPieces];
  uint64_t sizes[kPieces];
  int32_t codes[kPieces];
  for (int i = 0; i < kPieces; ++i) {
    from[i] = mine + (size_t)(i * kBytes);
    to[i] = host + (size_t)(i * kBytes);
    sizes[i] = kBytes;
    codes[i] = SMEM_OK;
  }
  smem_batch_copy_params batch = {from, to, sizes, kPieces};
  smem_batch_copy_result results = {codes, kPieces};
  LOSES(smem_bm_copy_batch(pool, &batch, SMEMB_COPY_H2G, 0));
  FAILS(smem_bm_copy_batch_partial_succeed(pool, &batch, SMEMB_COPY_H2G, 0, &results),
        SMEM_PARTIAL_FAILED, "lost its rank 2");
  for (int i = 0; i < kPieces; ++i) CHECK(codes[i] == SMEM_NOT_CONNECTED);
  CHECK(copy(pool, mine, host, kLarge, SMEMB_COPY_H2G, ASYNC_COPY_FLAG) == SMEM_OK);
  LOSES(smem_bm_wait(pool));
  CHECK(smem_bm_copy_batch(pool, &batch, SMEMB_COPY_H2G, ASYNC_COPY_FLAG) == SMEM_OK);
  LOSES(smem_bm_wait(pool));
  /* Its own memory is nobody else's. */
  CHECK(copy(pool, mine, host_of(pool, kOld), kLarge, SMEMB_COPY_H2G, 0) == SMEM_OK);
  CHECK(is_filled(host_of(pool, kOld), kLarge, kOldSeed));
  free(mine);
}

static void be_old(smem_bm_t pool) {
  pthread_t thread;
  /* The child ends the connection while its parent is stopped. */
  const pid_t child = fork();
  if (child == 0) {
    alarm(50);
    await_word(kCut, 1);
    /* A lease at etcd ends by the stop. */
    CHECK(is_etcd() || cut_store() > 0);
    atomic_store(&page->words[kIsCut], 1);
    _exit(0);
  }
  CHECK(pthread_create(&thread, NULL, flood, pool) == 0);
  pthread_join(thread, NULL);
  atomic_store(&page->words[kTurn], 1);
  await_word(kTurn, 2);
  expect_refusals(pool);
  atomic_store(&page->words[kTurn], 3);
  await_word(kTurn, 4);
  const double before = now();
  smem_bm_uninit(0);
  CHECK(now() - before < 5);
  atomic_store(&page->words[kTurn], 5);
}

/* Puts its bytes over those of the old member, and does all that a member may do. */
static void be_successor(smem_bm_t pool) {
  char* const mine = malloc(kLarge);
  meet(members);
  await_word(kTurn, 1);
  fill(mine, kLarge, kNewSeed);
  CHECK(copy(pool, mine, host_of(pool, kOwner), kLarge, SMEMB_COPY_H2G, 0) == SMEM_OK);
  CHECK(copy(pool, mine, device_of(pool, kOwner), kSize, SMEMB_COPY_L2G, 0) == SMEM_OK);
  atomic_store(&page->words[kTurn], 2);
  meet(members);
  memset(mine, 0, kLarge);
  CHECK(copy(pool, host_of(pool, kOwner), mine, kLarge, SMEMB_COPY_G2H, 0) == SMEM_OK);
  CHECK(is_filled(mine, kLarge, kNewSeed));
  CHECK(copy(pool, host_of(pool, 1), mine, kBytes, SMEMB_COPY_G2H, 0) == SMEM_OK);
  CHECK(is_filled(mine, kBytes, 1));
  free(mine);
  meet(members);
}

static void be_owner(smem_bm_t pool) {
  static char bytes[kBytes];
  const pid_t old = page->members[kOld];
  await_word(kIsFlooding, 1);
  CHECK(kill(old, SIGSTOP) == 0);
  atomic_store(&page->words[kCut], 1);
  await_word(kIsCut, 1);
  const double cut = now();
  while (copy(pool, host_of(pool, kOld), bytes, kBytes, SMEMB_COPY_G2H, 0) == SMEM_OK)
    CHECK(now() - cut < 20);
  atomic_store(&page->words[kIsReborn], 1);
  restart_member(kOld);
  meet(members);
  CHECK(kill(old, SIGCONT) == 0);
  await_word(kTurn, 3);
  CHECK(is_filled(host_of(pool, kOwner), kLarge, kNewSeed));
  CHECK(is_filled(device_of(pool, kOwner), kSize, kNewSeed));
  atomic_store(&page->words[kTurn], 4);
  await_word(kTurn, 5);
  meet(members);
  CHECK(copy(pool, host_of(pool, kOld), bytes, kBytes, SMEMB_COPY_G2H, 0) == SMEM_OK);
  CHECK(is_filled(bytes, kBytes, kNewSeed));
  meet(members);
}

/* A member is stopped while it copies, its lease ends, and another process gets its rank. The old
 * member then continues: at most its current piece arrives, and each later copy fails. */
SCENARIO(a_lost_rank_writes_no_more, 3, int number) {
  const int is_reborn = number == kOld && atomic_load(&page->words[kIsReborn]) == 1;
  begin(number);
  smem_bm_t pool = plain_pool(1, kLarge, kSize);
  CHECK(pool != NULL);
  fill(host_of(pool, number), kBytes, is_reborn ? kNewSeed : number);
  if (is_reborn) {
    be_successor(pool);
    return;
  }
  meet(members);
  if (number == kOld) {
    be_old(pool);
  } else if (number == kOwner) {
    be_owner(pool);
  } else {
    for (int i = 0; i < 3; ++i) meet(members);
  }
}

/* The same without a successor: a member that only the store has lost writes nothing. */
SCENARIO(a_lost_lease_writes_no_more, 3, int number) {
  begin(number);
  smem_bm_t pool = plain_pool(1, kLarge, kSize);
  CHECK(pool != NULL);
  fill(host_of(pool, number), kLarge, number);
  meet(members);
  if (number == kOld) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, flood, pool) == 0);
    await_word(kIsFlooding, 1);
    CHECK(cut_store() > 0);
    const double cut = now();
    pthread_join(thread, NULL);
    CHECK(now() - cut < 5);
  }
  meet(members);
  if (number == kOwner) fill(host_of(pool, number), kLarge, number);
  meet(members);
  if (number == kOld) expect_refusals(pool);
  meet(members);
  if (number == kOwner) CHECK(is_filled(host_of(pool, number), kLarge, number));
}
