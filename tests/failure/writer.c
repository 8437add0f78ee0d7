/* SPDX-License-Identifier: Apache-2.0
 * A thread that writes to static variables while the job begins and ends: no write is lost. */
#include <pthread.h>
#include <shmem.h>
#include <stdatomic.h>
#include <stdio.h>

enum { kRounds = 20, kLast = (1 << 16) - 1 };

static volatile unsigned long of_file =
    1; /* does not begin as zero, so it is in the program's file */
static volatile unsigned long zeroed[1 << 16];
static atomic_int is_over;

static void* write_on(void* written) {
  unsigned long count = 0;
  for (; !atomic_load_explicit(&is_over, memory_order_relaxed); ++count) {
    of_file = of_file + 1;
    zeroed[kLast] = zeroed[kLast] + 1;
  }
  *(unsigned long*)written = count;
  return NULL;
}

int main(void) {
  pthread_t writer;
  unsigned long written = 0;
  if (pthread_create(&writer, NULL, write_on, &written) != 0) return 1;
  for (int round = 0; round < kRounds; ++round) {
    shmem_init();
    shmem_finalize();
  }
  atomic_store(&is_over, 1);
  if (pthread_join(writer, NULL) != 0) return 1;
  if (zeroed[kLast] == written && of_file == written + 1) return 0;
  fprintf(stderr, "%lu writes, counted %lu and %lu\n", written, zeroed[kLast], of_file - 1);
  return 1;
}
