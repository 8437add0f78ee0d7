/* SPDX-License-Identifier: Apache-2.0
 * The type-generic names reach the function of the type. */
#include <shmem.h>

#include "support/check.h"

static signed char small[2];
static long double large[2];
static unsigned long long words[4];
static uint64_t signal_word;

int main(void) {
  shmem_ctx_t ctx;
  double minus_two = -2;
  float* real;
  shmem_init();
  CHECK(shmem_ctx_create(0, &ctx) == 0);
  real = (float*)shmem_malloc(4 * sizeof *real);

  shmem_p(small, (signed char)-3, 0);
  CHECK(shmem_g(small, 0) == -3);
  shmem_p(ctx, small + 1, (signed char)4, 0);
  CHECK(shmem_g(ctx, small + 1, 0) == 4);
  shmem_p(large, 1.25L, 0);
  CHECK(shmem_g(large, 0) == 1.25L);
  real[0] = 1;
  real[1] = 2;
  shmem_put(real + 2, real, 2, 0);
  CHECK(real[3] == 2);
  /* Converted to the type of what is pointed to, as a function's argument is. */
  shmem_p(real, minus_two, 0);
  CHECK(real[0] == -2);

  words[0] = 5;
  CHECK(shmem_atomic_fetch_add(words, 2, 0) == 5);
  CHECK(shmem_atomic_compare_swap(ctx, words, 7, ~0ULL, 0) == 7);
  shmem_atomic_and(words, 0xf0, 0);
  CHECK(shmem_atomic_fetch(words, 0) == 0xf0);
  CHECK(shmem_finc(words, 0) == 0xf0 && shmem_swap(words, 1, 0) == 0xf1);
  shmem_wait_until(words, SHMEM_CMP_EQ, 1);
  CHECK(shmem_test_any(words, 4, NULL, SHMEM_CMP_GT, 0) == 0);
  shmem_signal_add(&signal_word, 3, 0);
  shmem_signal_set(ctx, &signal_word, 9, 0);
  CHECK(shmem_signal_fetch(&signal_word) == 9);
  CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, words + 1, words, 1) == 0 && words[1] == 1);
  CHECK(shmem_sum_exscan(SHMEM_TEAM_WORLD, words + 1, words, 1) == 0 && words[1] == 0);
  CHECK(shmem_sync(SHMEM_TEAM_WORLD) == 0);
  shmem_free(real);
  shmem_ctx_destroy(ctx);
  shmem_finalize();
  return 0;
}
