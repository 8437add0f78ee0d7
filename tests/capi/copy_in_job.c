/* SPDX-License-Identifier: Apache-2.0
 * A job that loads a second copy of the library, its argument: the variables stay those of the
 * first one. */
#include <dlfcn.h>
#include <shmem.h>

#include "support/check.h"

static long counter = 7;
static long zeroed[4096];

int main(int count, char** arguments) {
  int me, pes;
  if (count != 2) return 2;
  shmem_init();
  me = shmem_my_pe();
  pes = shmem_n_pes();
  zeroed[0] = me;
  CHECK(dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) != NULL);
  CHECK(counter == 7 && zeroed[0] == me);
  shmem_barrier_all();
  shmem_long_p(&counter, 100 + me, (me + 1) % pes);
  shmem_long_p(&zeroed[4095], 200 + me, (me + 1) % pes);
  shmem_barrier_all();
  CHECK(counter == 100 + (me + pes - 1) % pes);
  CHECK(zeroed[4095] == 200 + (me + pes - 1) % pes);
  shmem_finalize();
  return 0;
}
