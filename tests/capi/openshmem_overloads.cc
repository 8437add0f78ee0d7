// SPDX-License-Identifier: Apache-2.0
// The overloads of the type-generic names in C++.
#include <shmem.h>

#include "support/check.h"

static long longs[2];
static unsigned char bytes[2];

int main() {
  shmem_init();
  shmem_p(longs, 3L, 0);
  shmem_p(SHMEM_CTX_DEFAULT, bytes, static_cast<unsigned char>(200), 0);
  CHECK(shmem_g(longs, 0) == 3 && shmem_g(bytes, 0) == 200);
  CHECK(shmem_atomic_fetch_inc(longs, 0) == 3);
  CHECK(shmem_swap(longs, 8L, 0) == 4);  // the C function
  shmem_wait_until(longs, SHMEM_CMP_EQ, 8L);
  CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, longs + 1, longs, 1) == 0 && longs[1] == 8);
  CHECK(shmem_sync(SHMEM_TEAM_WORLD) == 0);
  shmem_finalize();
  return 0;
}
