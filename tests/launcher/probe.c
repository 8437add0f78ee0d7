/* SPDX-License-Identifier: Apache-2.0
 * A process that joins a job and then misbehaves as told: probe MODE [FILE]. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  /* The last one never joins. */
  const char* rank = getenv("RANK");
  if (strcmp(mode, "leave_before_init") == 0 && rank != NULL && strcmp(rank, "1") == 0) return 0;
  if (strcmp(mode, "nothing") == 0) return 0;
  shmem_init();
  const int me = shmem_my_pe();
  shmem_barrier_all();
  if (strcmp(mode, "kill") == 0) {
    if (me == 1) raise(SIGKILL);
    shmem_barrier_all(); /* never completes: the line about PE 1 ends us */
  } else if (strcmp(mode, "no_finalize") == 0) {
    if (me == 1) _exit(0);
    shmem_barrier_all();
  } else if (strcmp(mode, "global_exit") == 0) {
    if (me == 1) shmem_global_exit(7);
    shmem_barrier_all();
  } else if (strcmp(mode, "exit_code") == 0) {
    shmem_finalize();
    return me == 1 ? 9 : 0;
  } else if (strcmp(mode, "print") == 0) {
    printf("one\n"); /* not flushed: the library decides when it leaves */
    FILE* end = argc > 2 ? fopen(argv[2], "r") : NULL; /* until somebody opens the other end */
    if (end == NULL) return 1;
    fclose(end);
  } else if (strcmp(mode, "wait") == 0) {
    printf("%d\n", (int)getpid());
    fflush(stdout);
    if (me == 0) pause();
    shmem_barrier_all();
  }
  shmem_finalize();
  return 0;
}
