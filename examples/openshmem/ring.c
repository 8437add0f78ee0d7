/* SPDX-License-Identifier: Apache-2.0
 * ring: a token travels from PE to PE, around and around.
 *
 * A put with signal writes data and then, when the data are there, a signal word next to it. The
 * receiver waits for the signal: two PEs meet without any third, and without a barrier.
 *
 *   oshrun -n 4 ./ring [rounds]
 */
#include "example.h"

/* What travels. Every PE adds to it. */
typedef struct {
  long hops;   /* how often it was passed on */
  long visits; /* sum of (PE + 1) over the PEs that passed it on */
} Token;

/* Global and static variables are symmetric too: every PE has them, and others can reach them. */
static Token token;
static uint64_t arrivals;

static void pass_on(int me, int to) {
  Token next = {token.hops + 1, token.visits + me + 1};
  shmem_putmem_signal(&token, &next, sizeof next, &arrivals, 1, SHMEM_SIGNAL_ADD, to);
}

/* How many of the two numbers are not what they must be when PE `me` gets the token for the
 * round-th time (counted from 1). PE 0 sees it last in a round: when it came around. */
static long count_wrong(int me, int pes, long round) {
  long before = me == 0 ? round : round - 1;   /* whole rounds behind it */
  long sum_of_all = (long)pes * (pes + 1) / 2; /* 1 + 2 + ... + pes */
  long hops = before * pes + me;               /* PEs 0 to me - 1 of this round */
  long visits = before * sum_of_all + (long)me * (me + 1) / 2;
  return (token.hops != hops) + (token.visits != visits);
}

int main(int argc, char** argv) {
  shmem_init();
  Argument rounds = {"rounds", 1, 1000000, 100};
  read_arguments("ring", argc, argv, &rounds, 1);
  int me = shmem_my_pe(), pes = shmem_n_pes();
  int right = (me + 1) % pes;
  long wrong = 0;

  shmem_barrier_all(); /* all have begun: the time is the ring's alone */
  double start = seconds_now();
  for (long round = 1; round <= rounds.value; ++round) {
    if (me == 0) pass_on(me, right); /* PE 0 begins the round ... */
    /* The next token cannot overwrite this one: it is not sent before this one is passed on. */
    shmem_signal_wait_until(&arrivals, SHMEM_CMP_EQ, (uint64_t)round);
    wrong += count_wrong(me, pes, round);
    if (me != 0) pass_on(me, right); /* ... and it ends there */
  }
  double seconds = seconds_now() - start;
  return finish("ring", seconds, wrong, "%ld rounds, %.2f us a hop", rounds.value,
                seconds * 1e6 / (double)(rounds.value * pes));
}
