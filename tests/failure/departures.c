/* SPDX-License-Identifier: Apache-2.0
 * Departures that are no deaths, and members that do not do alike:
 *
 *   failure_departures leave V HOW CALL
 *       Rank V leaves by HOW (exec, fork-exec, exit, finalize) while the others make CALL (barrier,
 *       reduce, wait, finalize). Of "served" PE 0 waits, and the last PE stores when stdin ends.
 *   failure_departures unlike CALL N...
 *       Rank r makes the collective CALL of Nr elements, or of "-" a barrier.
 *   failure_departures roots A B
 *       Rank r broadcasts from the r-th of them.
 *   failure_departures allocate MIB
 *       "got BYTE KIB" after a put to the block's end, or "refused RANK".
 *   failure_departures fill MIB
 *       Writes all of a block after PE 0's stdin ends: "got", then "done"; or "refused RANK".
 *   failure_departures fill-backwards MIB
 *       Writes all of a block, its last byte first: "touched", then "done" when PE 0's stdin ends.
 *   failure_departures finalize-twice
 *
 * Says "ready RANK PID" when it begins.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMost = 1 << 16 };

static int me, size;
static long* source;
static long* dest;

static void make_call(const char* call, size_t count) {
  const shmem_team_t all = SHMEM_TEAM_WORLD;
  if (strcmp(call, "barrier") == 0) shmem_barrier_all();
  if (strcmp(call, "wait") == 0) shmem_long_wait_until(dest, SHMEM_CMP_EQ, 1);
  if (strcmp(call, "reduce") == 0) shmem_long_sum_reduce(all, dest, source, count);
  if (strcmp(call, "broadcast") == 0) shmem_long_broadcast(all, dest, source, count, 0);
  if (strcmp(call, "fcollect") == 0) shmem_long_fcollect(all, dest, source, count);
  if (strcmp(call, "alltoall") == 0) shmem_long_alltoall(all, dest, source, count);
  if (strcmp(call, "alltoalls") == 0) shmem_long_alltoalls(all, dest, source, 2, 2, count);
  if (strcmp(call, "scan") == 0) shmem_long_sum_inscan(all, dest, source, count);
}

/* Returns when stdin ends. */
static void wait_for_input(void) {
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
}

/* Something else than a member of the job from here on; it ends when stdin does. */
static void become_another_program(void) {
  execlp("cat", "cat", (char*)NULL);
  _exit(127);
}

static void leave(const char* how) {
  if (strcmp(how, "exec") == 0) become_another_program();
  if (strcmp(how, "fork-exec") == 0) {
    /* A child that goes on with all that it has inherited. */
    if (fork() == 0) {
      wait_for_input();
      _exit(0);
    }
    become_another_program();
  }
  if (strcmp(how, "finalize") == 0) shmem_finalize();
  exit(0);
}

static long resident_kib(void) {
  char line[256];
  long kib = -1;
  FILE* file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    sscanf(line, "RssShmem: %ld", &kib);
  if (file != NULL) fclose(file);
  return kib;
}

static void allocate(size_t mib) {
  const size_t bytes = mib << 20;
  char* block = shmem_malloc(bytes);
  if (block == NULL) {
    printf("refused %d\n", me);
    return;
  }
  shmem_char_p(block + bytes - 1, (char)('a' + me), (me + 1) % size);
  shmem_barrier_all();
  printf("got %c %ld\n", block[bytes - 1], resident_kib());
}

static void fill(size_t mib) {
  char* block = shmem_malloc(mib << 20);
  printf("%s %d\n", block == NULL ? "refused" : "got", me);
  fflush(stdout);
  if (block == NULL) return;
  if (me == 0) wait_for_input();
  shmem_barrier_all();
  memset(block, 1, mib << 20);
  printf("done %d\n", me);
}

static void fill_backwards(size_t mib) {
  const size_t bytes = mib << 20;
  char* block = shmem_malloc(bytes);
  for (size_t at = bytes; at > 0; --at) block[at - 1] = 1;
  printf("touched %d\n", me);
  fflush(stdout);
  if (me == 0) wait_for_input();
  shmem_barrier_all();
  printf("done %d\n", me);
}

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "";
  shmem_init();
  me = shmem_my_pe();
  size = shmem_n_pes();
  printf("ready %d %d\n", me, (int)getpid());
  fflush(stdout);
  if (strcmp(what, "allocate") == 0) {
    allocate((size_t)atol(arguments[2]));
    shmem_finalize();
    return 0;
  }
  if (strcmp(what, "fill") == 0) {
    fill((size_t)atol(arguments[2]));
    shmem_finalize();
    return 0;
  }
  if (strcmp(what, "fill-backwards") == 0) {
    fill_backwards((size_t)atol(arguments[2]));
    shmem_finalize();
    return 0;
  }
  source = shmem_calloc(kMost, sizeof *source);
  dest = shmem_calloc(kMost, sizeof *dest);
  if (strcmp(what, "leave") == 0) {
    if (me == atoi(arguments[2])) leave(arguments[3]);
    make_call(strcmp(arguments[4], "served") == 0 && me == 0 ? "wait" : arguments[4], 1);
    if (strcmp(arguments[4], "served") == 0 && me == size - 1) {
      wait_for_input();
      shmem_long_p(dest, 1, 0);
    }
  }
  if (strcmp(what, "unlike") == 0) {
    const char* mine = arguments[3 + me];
    make_call(strcmp(mine, "-") == 0 ? "barrier" : arguments[2], (size_t)atol(mine));
    printf("done %d\n", me);
    fflush(stdout);
    shmem_barrier_all();
  }
  if (strcmp(what, "roots") == 0)
    shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, 1, atoi(arguments[2 + me]));
  shmem_finalize();
  if (strcmp(what, "finalize-twice") == 0) {
    shmem_finalize();
    printf("fine %d\n", me);
  }
  return 0;
}
