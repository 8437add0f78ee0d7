// SPDX-License-Identifier: Apache-2.0
// The job that does nothing: its wall time is what starting and ending costs.
#include <shmem.h>

int main(void) {
  shmem_init();
  shmem_finalize();
  return 0;
}
