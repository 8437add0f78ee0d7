// SPDX-License-Identifier: Apache-2.0
// An exchange of small packets in the manner of bale's exstack2: every PE fills a packet for each
// other PE, puts it and a flag there when it is full, and looks again and again at its own flags
// for what others have sent. Nothing in it waits: with more PEs than cores it ends as soon as the
// looks let those run that have something to send.
//
//   exchange WORDS HOW   HOW: test, fetch, g or signal, the call that looks at a flag
//
// Prints the seconds of the slowest PE. Exits with 1 when a word was lost or came twice.
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kPacketWords = 64 };

typedef struct {
  int64_t words[kPacketWords];
} Packet;

static int me, peers;
static Packet* inbox;     // [sender]
static uint64_t* filled;  // [sender]: how many words are in its packet, and kLast
static uint64_t* taken;   // [receiver]: how many of our packets it has taken
static const uint64_t kLast = 1u << 20;

static Packet* outbox;     // [receiver]
static int* used;          // [receiver]: words in its packet
static uint64_t* sent;     // [receiver]: packets
static uint64_t received;  // the sum of the words

static int (*is_set)(uint64_t* flag, uint64_t not_this);

static int by_test(uint64_t* flag, uint64_t not_this) {
  return shmem_uint64_test(flag, SHMEM_CMP_NE, not_this);
}
static int by_fetch(uint64_t* flag, uint64_t not_this) {
  return shmem_uint64_atomic_fetch(flag, me) != not_this;
}
static int by_g(uint64_t* flag, uint64_t not_this) {
  return shmem_uint64_g(flag, me) != not_this;
}
static int by_signal(uint64_t* flag, uint64_t not_this) {
  return shmem_signal_fetch(flag) != not_this;
}

static uint64_t next(uint64_t* state) {  // xorshift
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Whether the receiver has taken what was sent before.
static int may_send(int to) {
  return sent[to] == 0 || is_set(&taken[to], sent[to] - 1);
}

static void send_packet(int to, uint64_t flags) {
  shmem_putmem(&inbox[me], &outbox[to], (size_t)used[to] * sizeof(int64_t), to);
  shmem_fence();
  shmem_uint64_atomic_set(&filled[me], (uint64_t)used[to] | flags, to);
  sent[to]++;
  used[to] = 0;
}

// Takes what has come; returns the number of senders that sent their last packet.
static int drain(void) {
  int ended = 0;
  for (int from = 0; from < peers; from++) {
    if (!is_set(&filled[from], 0)) continue;
    const uint64_t count = shmem_uint64_atomic_fetch(&filled[from], me);
    for (uint64_t i = 0; i < (count & (kLast - 1)); i++) received += (uint64_t)inbox[from].words[i];
    ended += (count & kLast) != 0;
    filled[from] = 0;
    shmem_fence();
    shmem_uint64_atomic_inc(&taken[me], from);
  }
  return ended;
}

static double exchange(long words) {
  uint64_t random = 88172645463325252u + (uint64_t)me;
  int ended = 0;
  shmem_barrier_all();
  const double begin = seconds();
  for (long i = 0; i < words; i++) {
    const uint64_t draw = next(&random);
    const int to = (int)(draw % (uint64_t)peers);
    while (used[to] == kPacketWords && !may_send(to)) ended += drain();
    if (used[to] == kPacketWords) send_packet(to, 0);
    outbox[to].words[used[to]++] = (int64_t)(draw >> 40);
  }
  for (int to = 0; to < peers; to++) {
    while (!may_send(to)) ended += drain();
    send_packet(to, kLast);
  }
  while (ended < peers) ended += drain();
  return seconds() - begin;
}

static uint64_t sum_of_words(long words) {
  uint64_t random = 88172645463325252u + (uint64_t)me;
  uint64_t sum = 0;
  for (long i = 0; i < words; i++) sum += next(&random) >> 40;
  return sum;
}

int main(int argc, char** argv) {
  const long words = argc > 1 ? atol(argv[1]) : 100000;
  const char* how = argc > 2 ? argv[2] : "test";
  is_set = strcmp(how, "test") == 0     ? by_test
           : strcmp(how, "fetch") == 0  ? by_fetch
           : strcmp(how, "g") == 0      ? by_g
           : strcmp(how, "signal") == 0 ? by_signal
                                        : NULL;
  if (is_set == NULL || words < 1) {
    fprintf(stderr, "usage: exchange WORDS test|fetch|g|signal\n");
    return 2;
  }
  shmem_init();
  me = shmem_my_pe();
  peers = shmem_n_pes();
  const size_t count = (size_t)peers;
  inbox = shmem_calloc(count, sizeof *inbox);
  filled = shmem_calloc(count, sizeof *filled);
  taken = shmem_calloc(count, sizeof *taken);
  outbox = calloc(count, sizeof *outbox);
  used = calloc(count, sizeof *used);
  sent = calloc(count, sizeof *sent);
  double* took = shmem_calloc(2, sizeof *took);
  uint64_t* sums = shmem_calloc(4, sizeof *sums);

  took[0] = exchange(words);
  sums[0] = received;
  sums[1] = sum_of_words(words);
  shmem_double_max_reduce(SHMEM_TEAM_WORLD, &took[1], took, 1);
  shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, &sums[2], sums, 2);
  if (me == 0) printf("exchange by %s: %.6f s\n", how, took[1]);
  if (me == 0 && sums[2] != sums[3])
    fprintf(stderr, "exchange: sent %llu, received %llu\n", (unsigned long long)sums[3],
            (unsigned long long)sums[2]);
  const int is_wrong = sums[2] != sums[3];
  shmem_finalize();
  free(outbox);
  free(used);
  free(sent);
  return is_wrong;
}
