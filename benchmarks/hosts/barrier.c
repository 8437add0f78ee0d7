// SPDX-License-Identifier: Apache-2.0
// The barrier of two simulated hosts beside the one-way time of a bare socket between the same two
// processes, alternating in one run. What counts is the median of the ratios of all rounds.
//
//   oshrun -n 2 --simulate-hosts 2 hosts_barrier [rounds [calls [most]]]
//
// Fails when the median is more than `most`, if that is given.
#include <shmem.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rounds.h"

static long host_process;

static void give_up(const char* what) {
  perror(what);
  shmem_global_exit(1);
}

// A connection of PE 1 to PE 0 in the abstract namespace.
static int connect_both(int me) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (me == 0) host_process = getpid();
  shmem_barrier_all();
  const long process = shmem_long_g(&host_process, 0);
  const int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                              "memspan-hosts-barrier-%ld", process);
  const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
  int made = socket(AF_UNIX, SOCK_STREAM, 0);
  if (made < 0) give_up("socket");
  if (me == 0 && (bind(made, (struct sockaddr*)&address, bytes) != 0 || listen(made, 1) != 0))
    give_up("listen");
  shmem_barrier_all();
  if (me == 0) {
    const int listening = made;
    made = accept(listening, NULL, NULL);
    close(listening);
    if (made < 0) give_up("accept");
  } else if (connect(made, (struct sockaddr*)&address, bytes) != 0) {
    give_up("connect");
  }
  return made;
}

static void send_one(int peer) {
  const char byte = 1;
  if (send(peer, &byte, 1, MSG_NOSIGNAL) != 1) give_up("send");
}
static void receive_one(int peer) {
  char byte;
  if (recv(peer, &byte, 1, 0) != 1) give_up("recv");
}

// Half a round trip.
static double socket_us(int peer, int me, int calls) {
  const double start = now_us();
  for (int i = 0; i < calls; i++) {
    if (me == 0) {
      send_one(peer);
      receive_one(peer);
    } else {
      receive_one(peer);
      send_one(peer);
    }
  }
  return (now_us() - start) / calls / 2;
}

static double barrier_us(int calls) {
  const double start = now_us();
  for (int i = 0; i < calls; i++) shmem_barrier_all();
  return (now_us() - start) / calls;
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 15;
  const int calls = argc > 2 ? atoi(argv[2]) : 2000;
  const double most = argc > 3 ? atof(argv[3]) : 0;
  if (rounds < 1 || rounds > kMostRounds || calls < 1) {
    fprintf(stderr, "hosts_barrier: rounds is 1 to %d, calls 1 or more\n", kMostRounds);
    return 2;
  }
  shmem_init();
  const int me = shmem_my_pe();
  if (shmem_n_pes() != 2 || shmem_ptr(&host_process, 1 - me) != NULL) {
    if (me == 0) fprintf(stderr, "hosts_barrier: needs 2 PEs on 2 hosts\n");
    shmem_finalize();
    return 2;
  }
  const int peer = connect_both(me);
  static double bare[kMostRounds], barriers[kMostRounds], ratios[kMostRounds];
  barrier_us(calls / 10 + 1);
  for (int i = 0; i < rounds; i++) {
    bare[i] = socket_us(peer, me, calls);
    barriers[i] = barrier_us(calls);
    ratios[i] = barriers[i] / bare[i];
  }
  const double ratio = median(ratios, rounds);
  if (me == 0)
    printf("bare socket, one way %.2f us, barrier of 2 hosts %.2f us, ratio %.2f\n",
           median(bare, rounds), median(barriers, rounds), ratio);
  shmem_finalize();
  return most > 0 && ratio > most ? 1 : 0;
}
