/* SPDX-License-Identifier: Apache-2.0
 * A member that leaves a group: it ends the others' waits for what it has not done, names itself in
 * them, and ends no wait for what it has done. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "capi/group_job.h"

enum { kNumbers = 400000, kRounds = 16 };
/* The words of the page. */
enum { kHere, kLooked, kWhen };
enum leaving { kByDestroy, kByExit, kByReturn };
#ifdef __SANITIZE_THREAD__
static const double kAtOnce = 1.0;
#else
static const double kAtOnce = 0.1;
#endif
/* A machine that is busy may be late once, not always. */
enum { kTries = 3 };

/* What the next run_members() does. */
static int leaver;
static enum leaving leaving;
static int wait_number;
static atomic_int* was_late; /* all processes have it */

/* ---- waits that end */

struct ground {
  memspan_group_t group;
  int32_t* numbers;
  uint32_t* word;
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
  if (members == 2) return over(request);
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

static void wait_for_the_leaver(int rank) {
  struct talk talk = {members, rank, 0};
  struct ground ground = {join(&talk), calloc(kNumbers, 4), memspan_shareable_create(8)};
  CHECK(ground.numbers != NULL && ground.word != NULL);
  CHECK(memspan_group_barrier(ground.group) == SMEM_OK);
  if (rank == leaver) {
    await_count(kHere, (uint64_t)(members - 1));
    atomic_store(&page->words[kWhen], (uint64_t)(now() * 1e6));
    if (leaving == kByDestroy) {
      CHECK(memspan_group_destroy(ground.group) == SMEM_OK);
      /* The process lives on. */
      await_count(kLooked, (uint64_t)(members - 1));
    }
    free(ground.numbers);
    if (leaving == kByExit) exit(0);
    return;
  }
  char text[16];
  snprintf(text, sizeof text, "PE %d", leaver);
  atomic_fetch_add(&page->words[kHere], 1);
  CHECK(kWaits[wait_number](&ground) == SMEM_NOT_CONNECTED);
  const double seconds = now() - (double)atomic_load(&page->words[kWhen]) / 1e6;
  /* How it ended may come later from another host than that it did. */
  CHECK(says(text) && (says("left") || (!on_one_host(members) && says("is gone"))));
  if (seconds > kAtOnce) {
    fprintf(stderr, "wait %d ended after %.3f s\n", wait_number, seconds);
    atomic_store(was_late, 1);
  }
  /* The group is out of step, for good. */
  CHECK(memspan_group_barrier(ground.group) == SMEM_NOT_CONNECTED);
  CHECK(says(text));
  /* All have looked before the next one leaves. */
  atomic_fetch_add(&page->words[kLooked], 1);
  await_count(kLooked, (uint64_t)(members - 1));
  CHECK(memspan_group_destroy(ground.group) == SMEM_OK);
  free(ground.numbers);
}

static int ends_at_once(int members) {
  for (int tries = 0; tries < kTries; ++tries) {
    atomic_store(was_late, 0);
    if (run_members(members, wait_for_the_leaver, NULL) != 0) return 0;
    if (!atomic_load(was_late)) return 1;
  }
  return 0;
}

static int check_waits(void) {
  for (int members = 2; members <= 3; ++members)
    for (leaver = 0; leaver < members; leaver += members - 1) {
      leaving = kByDestroy;
      for (wait_number = 0; wait_number < kWaitsCount; ++wait_number)
        if ((on_one_host(members) || kWaits[wait_number] != at_word) && !ends_at_once(members))
          return 1;
      wait_number = 0;
      for (leaving = kByExit; leaving <= kByReturn; ++leaving)
        if (!ends_at_once(members)) return 1;
    }
  return 0;
}

/* ---- who is named */

/* The last member leaves, then the one before it, who has seen that; the others lack both. */
static void leave_one_after_the_other(int rank) {
  struct talk talk = {members, rank, 0};
  memspan_group_t group = join(&talk);
  const int last = members - 1;
  char text[16];
  snprintf(text, sizeof text, "PE %d", last);
  if (rank == last - 1) {
    await_count(kHere, 1);
    memspan_group_request_t request;
    int number = 0;
    CHECK(memspan_group_receive(group, last, 1, &number, sizeof number, &request) == SMEM_OK);
    CHECK(over(request) == SMEM_NOT_CONNECTED && says(text));
  } else if (rank < last - 1) {
    await_count(kHere, 2);
    CHECK(memspan_group_barrier(group) == SMEM_NOT_CONNECTED && says(text));
    atomic_fetch_add(&page->words[kLooked], 1);
    await_count(kLooked, (uint64_t)(members - 2));
  }
  CHECK(memspan_group_destroy(group) == SMEM_OK);
  if (rank >= last - 1) atomic_fetch_add(&page->words[kHere], 1);
}

/* ---- what the leaver has done stays */

static void take_what_was_sent(int rank) {
  struct talk talk = {members, rank, 0};
  memspan_group_t group = join(&talk);
  memspan_group_request_t requests[3];
  int64_t values[3] = {7, 8, 9};
  if (rank == 0) {
    for (int i = 0; i < 3; ++i) {
      CHECK(memspan_group_send(group, 1, i, &values[i], 8, &requests[i]) == SMEM_OK);
      CHECK(memspan_group_wait(requests[i], 0) == SMEM_OK);
    }
    CHECK(memspan_group_destroy(group) == SMEM_OK);
    atomic_store(&page->words[kHere], 1);
    return;
  }
  await_count(kHere, 1);
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
static void leave_at_once(int rank) {
  struct talk talk = {members, rank, 0};
  int32_t* mine = malloc(4 * kNumbers);
  int32_t* all = malloc(4 * kNumbers * (size_t)members);
  CHECK(mine != NULL && all != NULL);
  void* results[3];
  for (int member = 0; member < members; ++member) results[member] = all + member * kNumbers;
  for (int round = 0; round < kRounds; ++round) {
    memspan_group_t group = join(&talk);
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

static void leave_during_a_call(int rank) {
  struct talk talk = {members, rank, 0};
  memspan_group_t group = join(&talk);
  void* mine = memspan_shareable_create(8);
  void* mapped[2];
  if (on_one_host(members)) CHECK(memspan_group_map(group, mine, mapped) == SMEM_OK);
  if (rank == 0) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_in_vain, group) == 0);
    CHECK(memspan_group_leave(group) == SMEM_OK);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(memspan_group_barrier(group) == SMEM_NOT_STARTED && says("has left the group"));
    if (on_one_host(members)) {
      CHECK(memspan_group_unmap(group, mapped) == SMEM_OK);
      CHECK(memspan_group_unmap(group, mapped) == SMEM_INVALID_PARAM);
    }
    atomic_store(&page->words[kHere], 1);
  } else {
    await_count(kHere, 1);
    /* Whether it came to the first barrier is open; it comes to no second one. */
    int32_t code = memspan_group_barrier(group);
    if (code == SMEM_OK) code = memspan_group_barrier(group);
    CHECK(code == SMEM_NOT_CONNECTED && says("PE 0"));
  }
  CHECK(memspan_group_destroy(group) == SMEM_OK);
  CHECK(memspan_shareable_destroy(mine) == SMEM_OK);
}

static int check_all(void) {
  if (check_waits() != 0) return 1;
  for (int members = 3; members <= 5; ++members)
    if (run_members(members, leave_one_after_the_other, NULL) != 0) return 1;
  if (run_members(2, take_what_was_sent, NULL) != 0) return 1;
  if (run_members(2, leave_during_a_call, NULL) != 0) return 1;
  return run_members(2, leave_at_once, NULL) != 0 || run_members(3, leave_at_once, NULL) != 0;
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
