/* SPDX-License-Identifier: Apache-2.0
 * What the C tests of MemFabric's interface share: processes with a store, and what a failure must
 * say. */
#ifndef MEMSPAN_TESTS_FABRIC_SMEM_TEST_H
#define MEMSPAN_TESTS_FABRIC_SMEM_TEST_H

#include <smem/host/smem.h>
#include <stdlib.h>

#define CHECK_REASON smem_get_last_err_msg
#include "support/check.h"
#include "support/processes.h"

enum { kMiB = 1 << 20, kSize = 2 * kMiB };

/* Whether two members are on the same host (join_test_host). */
static inline int is_near(int one, int other) {
  const char* hosts = getenv("MEMSPAN_TEST_HOSTS");
  return hosts == NULL || one % atoi(hosts) == other % atoi(hosts);
}
/* Whether a call gave this code, and the last error has it and these words. */
int is_failure(int32_t got, int32_t wanted, const char* words);
#define FAILS(call, code, words) CHECK(is_failure((call), (code), (words)))
#define REFUSES(call, words) FAILS(call, SMEM_INVALID_PARAM, words)
/* The same of a call that makes something, and gave NULL. */
#define MAKES_NOTHING(call, code, words) \
  CHECK((call) == NULL && is_failure(smem_get_last_err_code(), (code), (words)))
#define REFUSES_TO_MAKE(call, words) MAKES_NOTHING(call, SMEM_INVALID_PARAM, words)

#endif
