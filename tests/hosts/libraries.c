/* SPDX-License-Identifier: Apache-2.0
 * Whether this process has UCX loaded after it has talked to its neighbour; the argument says what
 * is right: with_ucx or without_ucx. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count_libraries(const char* name) {
  FILE* maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) return -1;
  char line[4096];
  int count = 0;
  while (fgets(line, sizeof line, maps) != NULL) count += strstr(line, name) != NULL;
  fclose(maps);
  return count;
}

int main(int count, char** arguments) {
  const int is_wanted = count > 1 && strcmp(arguments[1], "with_ucx") == 0;
  shmem_init();
  long* word = shmem_calloc(1, sizeof(long));
  const int next = (shmem_my_pe() + 1) % shmem_n_pes();
  shmem_long_atomic_add(word, 1, next);
  shmem_barrier_all();
  int failures = *word != 1;
  for (const char* const* name =
           (const char* const[]){"libmemspan_ucx.so", "libucp.so", "libucs.so", NULL};
       *name != NULL; ++name) {
    const int found = count_libraries(*name);
    if (found >= 0 && (found > 0) == is_wanted) continue;
    fprintf(stderr, "PE %d: %s is mapped %d times\n", shmem_my_pe(), *name, found);
    ++failures;
  }
  shmem_finalize();
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
