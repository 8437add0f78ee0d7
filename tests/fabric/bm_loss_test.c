/* SPDX-License-Identifier: Apache-2.0
 * Big Memory among real processes: who comes and goes. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/pools.h"

SCENARIO(comes_and_goes, 3, int number) {
  begin(number);
  smem_bm_t pool = plain_pool(1, kSize, 0);
  meet(members);
  const int last = members - 1;
  static char bytes[1000];
  for (int round = 0; round < 20; ++round) {
    if (number == last) {
      CHECK(smem_bm_leave(pool, 0) == SMEM_OK);
      /* The own memory is there all the same. */
      fill(host_of(pool, number), 1000, round);
      FAILS(copy(pool, host_of(pool, 0), bytes, 1000, SMEMB_COPY_G2H, 0), SMEM_NOT_CONNECTED,
            "has joined");
      FAILS(smem_bm_leave(pool, 0), SMEM_NOT_STARTED, "has not joined");
    }
    meet(members);
    if (number != last)
      FAILS(copy(pool, host_of(pool, last), bytes, 1000, SMEMB_COPY_G2H, 0), SMEM_NOT_CONNECTED,
            "is not in the pool");
    meet(members);
    if (number == last) CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK);
    meet(members);
    CHECK(copy(pool, host_of(pool, last), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
    CHECK(is_filled(bytes, 1000, round));
    meet(members);
  }
}

/* A batch right after a member has left and joined again. A far one is stopped meanwhile, so that
 * it begins the batch before it is told of the join. */
SCENARIO(a_batch_after_a_rejoin, 2, int number) {
  enum { kPieces = 64, kPiece = 1000, kRounds = 20 };
  begin(number);
  smem_bm_t pool = plain_pool(1, kSize, 0);
  meet(members);
  static char bytes[kPieces * kPiece];
  void* sources[kPieces];
  void* targets[kPieces];
  uint64_t sizes[kPieces];
  for (int i = 0; i < kPieces; ++i) {
    sources[i] = bytes + (size_t)(i * kPiece);
    targets[i] = host_of(pool, 1) + (size_t)(i * kPiece);
    sizes[i] = kPiece;
  }
  smem_batch_copy_params batch = {sources, targets, sizes, kPieces};
  for (uint64_t round = 1; round <= kRounds; ++round) {
    fill(bytes, sizeof bytes, (int)round);
    meet(members);
    if (number == 1) {
      if (!is_near(0, 1)) CHECK(kill(page->members[0], SIGSTOP) == 0);
      CHECK(smem_bm_leave(pool, 0) == SMEM_OK);
      CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK);
      atomic_store(&page->words[0], round);
      CHECK(kill(page->members[0], SIGCONT) == 0);
    } else {
      await_word(0, round);
      CHECK(smem_bm_copy_batch(pool, &batch, SMEMB_COPY_H2G, 0) == SMEM_OK);
    }
    meet(members);
    if (number == 1) CHECK(is_filled(host_of(pool, 1), sizeof bytes, (int)round));
  }
}

/* Cuts the links between hosts. */
static int cut_links(void) {
  /* Links are Unix sockets on simulated hosts, and TCP on others, as the connections of the store.
   */
  const int store_port = atoi(strrchr(page->url, ':') + 1);
  int cut = 0;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    int type = 0;
    struct sockaddr_storage peer, mine;
    socklen_t length = sizeof type, peer_length = sizeof peer, my_length = sizeof mine;
    if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM ||
        getpeername(descriptor, (struct sockaddr*)&peer, &peer_length) != 0 ||
        getsockname(descriptor, (struct sockaddr*)&mine, &my_length) != 0)
      continue;
    if (peer.ss_family == AF_INET && (ntohs(((struct sockaddr_in*)&peer)->sin_port) == store_port ||
                                      ntohs(((struct sockaddr_in*)&mine)->sin_port) == store_port))
      continue;
    if (shutdown(descriptor, SHUT_RDWR) == 0) ++cut;
  }
  return cut;
}

/* A link is cut: at most the copy that finds out fails, and the next one has a new link. */
SCENARIO(goes_on_after_a_cut_link, 2, int number) {
  begin(number);
  smem_bm_t pool = plain_pool(1, kSize, 0);
  fill(host_of(pool, number), 1000, number);
  meet(members);
  const int other = 1 - number;
  static char bytes[1000];
  for (int round = 0; round < 10; ++round) {
    CHECK(copy(pool, host_of(pool, other), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
    meet(members);
    if (number == round % 2) CHECK(is_near(0, 1) || cut_links() > 0);
    meet(members);
    const double before = now();
    memset(bytes, 0, sizeof bytes);
    if (copy(pool, host_of(pool, other), bytes, 1000, SMEMB_COPY_G2H, 0) != SMEM_OK) {
      CHECK(!is_near(0, 1) && smem_get_last_err_code() == SMEM_NOT_CONNECTED);
      CHECK(strstr(smem_get_last_err_msg(), number == 0 ? "rank 1" : "rank 0") != NULL);
      CHECK(copy(pool, host_of(pool, other), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
    }
    CHECK(is_filled(bytes, 1000, other) && now() - before < 5);
    meet(members);
  }
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

SCENARIO(churns, 3, int number) {
  begin(number);
  smem_bm_t pool = plain_pool(1, kSize, 0);
  fill(host_of(pool, number), 64 * 1024, 5);
  meet(members);
  if (number == members - 1) {
    for (int round = 0; round < 100; ++round) {
      CHECK(smem_bm_leave(pool, 0) == SMEM_OK);
      CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK);
    }
    atomic_store(&page->words[0], 1);
    return;
  }
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) CHECK(pthread_create(&threads[i], NULL, keep_copying, pool) == 0);
  for (int i = 0; i < 2; ++i) {
    void* wrong = NULL;
    pthread_join(threads[i], &wrong);
    CHECK(wrong == NULL);
  }
}

/* Member 2 is killed; the others go on, notice it at once, and a new process takes its rank. */
SCENARIO(survives_a_death, 3, int number) {
  const int is_reborn = number == 2 && atomic_load(&page->words[9]) == 1;
  begin(number);
  smem_bm_t pool = plain_pool(1, kSize, 0);
  fill(host_of(pool, number), 1000, number + is_reborn * 50);
  if (is_reborn) {
    meet(members);
    meet(members);
    return;
  }
  meet(members);
  if (number == 2)
    for (;;) pause();
  static char bytes[1000];
  CHECK(copy(pool, host_of(pool, 2), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  CHECK(is_filled(bytes, 1000, 2));
  meet(members - 1);
  if (number == 0) end_member(2);
  const double killed = now();
  while (copy(pool, host_of(pool, 2), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK)
    CHECK(now() - killed < 1);
  CHECK(smem_get_last_err_code() == SMEM_NOT_CONNECTED);
  CHECK(strstr(smem_get_last_err_msg(), "rank 2") != NULL);
  CHECK(copy(pool, host_of(pool, 1 - number), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  meet(members - 1);
  if (number == 0) {
    atomic_store(&page->words[9], 1);
    restart_member(2);
  }
  meet(members);
  CHECK(copy(pool, host_of(pool, 2), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  CHECK(is_filled(bytes, 1000, 52));
  meet(members);
}

/* Member 0 is stopped while the others join: they are not held up, and it has its place later. */
SCENARIO(a_stuck_member_delays_nobody, 3, int number) {
  begin(number);
  smem_bm_t pool = smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0);
  CHECK(pool != NULL);
  static char bytes[1000];
  if (number == 0) {
    CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK);
    fill(host_of(pool, 0), 1000, 3);
    meet(members);
    await_word(0, 1);
    meet(members);
    return;
  }
  meet(members);
  if (number == 1) {
    CHECK(kill(page->members[0], SIGSTOP) == 0);
    atomic_store(&page->words[1], 1);
  }
  await_word(1, 1);
  const double before = now();
  CHECK(smem_bm_join(pool, 0, NULL) == SMEM_OK);
  CHECK(now() - before < 5);
  meet(members - 1);
  const int other = number == 1 ? 2 : 1;
  CHECK(copy(pool, host_of(pool, other), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  meet(members - 1);
  if (number == 1) {
    CHECK(kill(page->members[0], SIGCONT) == 0);
    atomic_store(&page->words[0], 1);
  }
  CHECK(copy(pool, host_of(pool, 0), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  CHECK(is_filled(bytes, 1000, 3));
  meet(members);
}

/* A piece whose rank does not answer fails alone, also before one that is copied in parts. */
SCENARIO(a_lost_piece_spares_the_next, 2, int number) {
  enum { kLarge = 40 << 20 };
  smem_bm_config_t impatient = config(number);
  impatient.controlOperationTimeout = 2;
  CHECK(smem_bm_init(page->url, (uint32_t)members, 0, &impatient) == SMEM_OK);
  smem_bm_t pool = plain_pool(1, kLarge, 0);
  CHECK(pool != NULL);
  meet(members);
  if (number == 1) {
    await_word(0, 1);
    return;
  }
  char* const bytes = malloc(kLarge);
  fill(bytes, kLarge, 5);
  void* from[] = {bytes, bytes};
  void* to[] = {host_of(pool, 1), host_of(pool, 0)};
  uint64_t sizes[] = {8, kLarge};
  int32_t codes[] = {1, 1};
  smem_batch_copy_params batch = {from, to, sizes, 2};
  smem_batch_copy_result results = {codes, 2};
  CHECK(kill(page->members[1], SIGSTOP) == 0);
  const int32_t code =
      smem_bm_copy_batch_partial_succeed(pool, &batch, SMEMB_COPY_H2G, 0, &results);
  CHECK(kill(page->members[1], SIGCONT) == 0);
  CHECK(codes[1] == SMEM_OK && is_filled(host_of(pool, 0), kLarge, 5));
  CHECK(is_near(0, 1) == (code == SMEM_OK) && (codes[0] == SMEM_OK) == (code == SMEM_OK));
  atomic_store(&page->words[0], 1);
  free(bytes);
}

/* The store is killed: those who have each other go on, and what needs the store fails at once. */
SCENARIO(goes_on_without_the_store, 3, int number) {
  begin(number);
  smem_bm_t pool = plain_pool(1, kSize, 0);
  smem_bm_t apart = smem_bm_create(2, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0);
  CHECK(apart != NULL);
  fill(host_of(pool, number), 1000, number);
  meet(members);
  static char bytes[1000];
  const int other = (number + 1) % members;
  CHECK(copy(pool, host_of(pool, other), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  meet(members);
  if (number == 0) end_helper();
  meet(members);
  const double before = now();
  CHECK(smem_bm_join(apart, 0, NULL) == SMEM_NOT_CONNECTED);
  CHECK(smem_bm_create(3, 0, SMEMB_DATA_OP_SDMA, kSize, 0, 0) == NULL);
  CHECK(smem_get_last_err_code() == SMEM_NOT_CONNECTED);
  memset(bytes, 0, sizeof bytes);
  CHECK(copy(pool, host_of(pool, other), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  CHECK(is_filled(bytes, 1000, other));
  meet(members);
  smem_bm_uninit(0);
  CHECK(now() - before < 5);
}

/* A far member dies, and a child of it lives on: the link ends all the same. */
SCENARIO(a_child_holds_no_link, 2, int number) {
  begin(number);
  smem_bm_t pool = plain_pool(1, kSize, 0);
  meet(members);
  static char bytes[1000];
  CHECK(copy(pool, host_of(pool, 1 - number), bytes, 1000, SMEMB_COPY_G2H, 0) == SMEM_OK);
  meet(members);
  if (number == 1) {
    if (fork() == 0) {
      alarm(30);
      atomic_store(&page->words[0], 1);
      await_word(1, 1);
      _exit(0);
    }
    for (;;) pause();
  }
  await_word(0, 1);
  end_member(1);
  const double killed = now();
  if (!is_near(0, 1))
    FAILS(copy(pool, host_of(pool, 1), bytes, 1000, SMEMB_COPY_G2H, 0), SMEM_NOT_CONNECTED,
          "rank 1");
  CHECK(now() - killed < 5);
  atomic_store(&page->words[1], 1);
}
