/* SPDX-License-Identifier: Apache-2.0
 * A process of a job that says "in" and stays until its standard input ends. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
  shmem_init();
  puts("in");
  fflush(stdout);
  while (getchar() != EOF) continue;
  shmem_finalize();
  return 0;
}
