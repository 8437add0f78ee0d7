/* SPDX-License-Identifier: Apache-2.0
 * A member that leaves a group: it ends the others' waits for what it has not done, names itself in
 * them, and ends no wait for what it has done. */
#define _GNU_SOURCE
#include <memspan/group.h>
#include <pthread.h>

#include "group_job.h"

enum { kNumbers = 400000, kRounds = 16 };
enum leaving { kByDestroy, kByExit, kByReturn };
static const double kAtOnce = 0.1;
/* A machine that is busy may be late once, not always. */
enum { kTries = 3 };

/* What the next run_members() does. */
static int leaver;
static enum leaving leaving;
static int wait_number;
static atomic_int* was_late; /* all processes have it */

static memspan_group_t join(struct meeting* meeting) {
  memspan_group_t group = NULL;
  CHECK(memspan_group_create(meeting->rank, meeting->members, exchange, meeting, 1000 * kSeconds,
                             &group) == SMEM_OK);
  return group;
}

/* ---- waits that end */

struct ground {
  memspan_group_t group;
  int32_t* numbers;
  uint32_t* word;
  int members;
};

static int32_t at_barrier(struct ground* g) {
  return memspan_group_barrier(g->group);
}
static int32_t at_small_all_reduce(struct ground* g) {
  return memspan_group_all_reduce(g->group, g->numbers, g->numbers, 2, MEMSPAN_TYPE_INT32,
                                  MEMSPAN_OP_SUM);
}
static int32_t at_large_all_reduce(struct ground* g) {
  return memspan_group_all_reduce(g->group, g->numbers, g->numbers, kNumbers, MEMSPAN_TYPE_INT32,
                                  MEMSPAN_OP_SUM);
}
static int32_t at_broadcast(struct ground* g) {
  return memspan_group_broadcast(g->group, g->numbers, kNumbers, leaver);
}
static int32_t over(memspan_group_request_t request) {
  const int32_t code = memspan_group_wait(request, 0);
  CHECK(memspan_group_request_free(request) == SMEM_OK);
  return code;
}
static int32_t at_receive(struct ground* g) {
  memspan_group_request_t request;
  CHECK(memspan_group_receive(g->group, leaver, 1, g->numbers, 4, &request) == SMEM_OK);
  return over(request);
}
static int32_t at_send_of_much(struct ground* g) {
  memspan_group_request_t request;
  CHECK(memspan_group_send(g->group, leaver, 1, g->numbers, 4 * kNumbers, &request) == SMEM_OK);
  return over(request);
}
static int32_t at_poll(struct ground* g) {
  memspan_group_request_t request;
  CHECK(memspan_group_receive(g->group, leaver, 1, g->numbers, 4, &request) == SMEM_OK);
  int32_t code = MEMSPAN_GROUP_PENDING;
  while (code == MEMSPAN_GROUP_PENDING) code = memspan_group_test(request);
  CHECK(says("left"));
  return over(request);
}
static int32_t at_word(struct ground* g) {
  return memspan_group_swap_word(g->group, g->word, 1, 0, leaver, 0);
}
/* Only the last one of the others ends it. */
static int32_t at_receive_from_anybody(struct ground* g) {
  memspan_group_request_t request;
  CHECK(memspan_group_receive(g->group, MEMSPAN_GROUP_ANYBODY, 1, g->numbers, 4, &request) ==
        SMEM_OK);
  if (g->members == 2) return over(request);
  CHECK(memspan_group_wait(request, 20) == SMEM_TIMEOUT);
  CHECK(memspan_group_request_free(request) == SMEM_OK);
  return memspan_group_barrier(g->group);
}

static int32_t (*const kWaits[])(struct ground*) = {
    at_barrier,
    at_small_all_reduce,
    at_large_all_reduce,
    at_broadcast,
    at_receive,
    at_send_of_much,
    at_poll,
    at_word,
    at_receive_from_anybody,
};
enum { kWaitsCount = sizeof kWaits / sizeof *kWaits };

static void wait_for_the_leaver(struct meeting* meeting) {
  struct board* board = meeting->board;
  struct ground ground = {join(meeting), calloc(kNumbers, 4), memspan_shareable_create(8),
                          meeting->members};
  CHECK(ground.numbers != NULL && ground.word != NULL);
  CHECK(memspan_group_barrier(ground.group) == SMEM_OK);
  if (meeting->rank == leaver) {
    CHECK(wait_for_count(&board->said[0], meeting->members - 1));
    atomic_store(&board->when, now());
    if (leaving == kByDestroy) {
      CHECK(memspan_group_destroy(ground.group) == SMEM_OK);
      /* The process lives on. */
      CHECK(wait_for_count(&board->said[1], meeting->members - 1));
    }
    free(ground.numbers);
    if (leaving == kByExit) exit(0);
    return;
  }
  char text[16];
  snprintf(text, sizeof text, "PE %d", leaver);
  atomic_fetch_add(&board->said[0], 1);
  CHECK(kWaits[wait_number](&ground) == SMEM_NOT_CONNECTED);
  const double seconds = now() - atomic_load(&board->when);
  CHECK(says(text) && says("left"));
  if (seconds > kAtOnce) {
    fprintf(stderr, "wait %d ended after %.3f s\n", wait_number, seconds);
    atomic_store(was_late, 1);
  }
  /* The group is out of step, for good. */
  CHECK(memspan_group_barrier(ground.group) == SMEM_NOT_CONNECTED);
  CHECK(says(text));
  /* All have looked before the next one leaves. */
  atomic_fetch_add(&board->said[1], 1);
  CHECK(wait_for_count(&board->said[1], meeting->members - 1));
  CHECK(memspan_group_destroy(ground.group) == SMEM_OK);
  free(ground.numbers);
}

static int ends_at_once(int members) {
  for (int tries = 0; tries < kTries; ++tries) {
    atomic_store(was_late, 0);
    if (run_members(members, wait_for_the_leaver, -1) != 0) return 0;
    if (!atomic_load(was_late)) return 1;
  }
  return 0;
}

static int check_waits(void) {
  for (int members = 2; members <= 3; ++members)
    for (leaver = 0; leaver < members; leaver += members - 1) {
      leaving = kByDestroy;
      for (wait_number = 0; wait_number < kWaitsCount; ++wait_number)
        if (!ends_at_once(members)) return 1;
      wait_number = 0;
      for (leaving = kByExit; leaving <= kByReturn; ++leaving)
        if (!ends_at_once(members)) return 1;
    }
  return 0;
}

/* ---- what the leaver has done stays */

static void take_what_was_sent(struct meeting* meeting) {
  struct board* board = meeting->board;
  memspan_group_t group = join(meeting);
  memspan_group_request_t requests[3];
  int64_t values[3] = {7, 8, 9};
  if (meeting->rank == 0) {
    for (int i = 0; i < 3; ++i) {
      CHECK(memspan_group_send(group, 1, i, &values[i], 8, &requests[i]) == SMEM_OK);
      CHECK(memspan_group_wait(requests[i], 0) == SMEM_OK);
    }
    CHECK(memspan_group_destroy(group) == SMEM_OK);
    atomic_store(&board->said[0], 1);
    return;
  }
  CHECK(wait_for_count(&board->said[0], 1));
  int64_t got = 0;
  for (int i = 2; i >= 0; --i) {
    const int from = i == 1 ? MEMSPAN_GROUP_ANYBODY : 0;
    CHECK(memspan_group_receive(group, from, i, &got, 8, &requests[0]) == SMEM_OK);
    CHECK(memspan_group_wait(requests[0], 0) == SMEM_OK && got == values[i]);
    CHECK(memspan_group_request_free(requests[0]) == SMEM_OK);
  }
  CHECK(memspan_group_receive(group, 0, 3, &got, 8, &requests[0]) == SMEM_OK);
  CHECK(memspan_group_wait(requests[0], 0) == SMEM_NOT_CONNECTED && says("PE 0"));
}

/* Whoever is done first leaves at once, while the others still take their results. */
static void leave_at_once(struct meeting* meeting) {
  const int members = meeting->members, rank = meeting->rank;
  int32_t* mine = malloc(4 * kNumbers);
  int32_t* all = malloc(4 * kNumbers * (size_t)members);
  CHECK(mine != NULL && all != NULL);
  void* results[kMostMembers];
  for (int member = 0; member < members; ++member) results[member] = all + member * kNumbers;
  for (int round = 0; round < kRounds; ++round) {
    memspan_group_t group = join(meeting);
    for (int i = 0; i < kNumbers; ++i) mine[i] = rank + round;
    if (round % 2 == 0) {
      CHECK(memspan_group_all_gather(group, results, mine, 4 * kNumbers) == SMEM_OK);
      for (int member = 0; member < members; ++member)
        CHECK(all[member * kNumbers] == member + round &&
              all[(member + 1) * kNumbers - 1] == member + round);
    } else {
      CHECK(memspan_group_all_reduce(group, all, mine, kNumbers, MEMSPAN_TYPE_INT32,
                                     MEMSPAN_OP_SUM) == SMEM_OK);
      const int sum = members * (members - 1) / 2 + members * round;
      CHECK(all[0] == sum && all[kNumbers - 1] == sum);
    }
    CHECK(memspan_group_destroy(group) == SMEM_OK);
  }
  free(all);
  free(mine);
}

/* ---- leaving during a call */

static void* wait_in_vain(void* group) {
  CHECK(memspan_group_barrier(group) == SMEM_NOT_STARTED);
  CHECK(says("left"));
  return NULL;
}

static void leave_during_a_call(struct meeting* meeting) {
  struct board* board = meeting->board;
  memspan_group_t group = join(meeting);
  if (meeting->rank == 0) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_in_vain, group) == 0);
    CHECK(memspan_group_leave(group) == SMEM_OK);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(memspan_group_barrier(group) == SMEM_NOT_STARTED && says("has left the group"));
    atomic_store(&board->said[0], 1);
  } else {
    CHECK(wait_for_count(&board->said[0], 1));
    /* Whether it came to the first barrier is open; it comes to no second one. */
    int32_t code = memspan_group_barrier(group);
    if (code == SMEM_OK) code = memspan_group_barrier(group);
    CHECK(code == SMEM_NOT_CONNECTED && says("PE 0"));
  }
  CHECK(memspan_group_destroy(group) == SMEM_OK);
}

static int check_all(void) {
  if (check_waits() != 0) return 1;
  if (run_members(2, take_what_was_sent, -1) != 0) return 1;
  if (run_members(2, leave_during_a_call, -1) != 0) return 1;
  return run_members(2, leave_at_once, -1) != 0 || run_members(3, leave_at_once, -1) != 0;
}

/* Members meet by flags when each has a core, else by a counter. */
int main(void) {
  was_late =
      mmap(NULL, sizeof *was_late, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(was_late != MAP_FAILED);
  if (check_all() != 0) return 1;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
  return check_all();
}
