// SPDX-License-Identifier: Apache-2.0
// Allocates 1 GiB a PE and writes the first tenth. Prints how much memory that and the start took
// on this host, and how much was written, both in MiB a PE.
#include <shmem.h>
#include <stdio.h>
#include <string.h>

static double shared_mib(void) {
  char line[128];
  double kib = 0;
  FILE* const file = fopen("/proc/meminfo", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "Shmem: %lf kB", &kib) == 1) break;
  if (file != NULL) fclose(file);
  return kib / 1024;
}

int main(void) {
  const size_t bytes = (size_t)1 << 30;
  const size_t written = bytes / 10;
  const double before = shared_mib();
  shmem_init();
  char* const block = shmem_malloc(bytes);
  if (block == NULL) {
    printf("# ERROR no memory\n");
    shmem_global_exit(1);
  }
  memset(block, 1, written);
  shmem_barrier_all();
  const double pes = shmem_n_pes();
  if (shmem_my_pe() == 0) {
    const double resident = (shared_mib() - before) / pes;
    const double touched = (double)written / (1 << 20);
    printf("resident 0 %.1f MiB %.1f %.1f 1\n", resident, resident, resident);
    printf("touched 0 %.1f MiB %.1f %.1f 1\n", touched, touched, touched);
  }
  shmem_barrier_all();
  shmem_finalize();
  return 0;
}
