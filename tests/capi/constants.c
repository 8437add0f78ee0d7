/* SPDX-License-Identifier: Apache-2.0
 * The constants can stand where C wants a constant. */
#include <shmem.h>

#include "support/check.h"

static shmem_team_t teams[] = {SHMEM_TEAM_INVALID, SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED};
static shmem_ctx_t contexts[] = {SHMEM_CTX_INVALID, SHMEM_CTX_DEFAULT};
static char name[SHMEM_MAX_NAME_LEN];

static int number_of(int compare) {
  switch (compare) {
    case SHMEM_CMP_EQ:
      return 0;
    case SHMEM_CMP_NE:
      return 1;
    case SHMEM_CMP_GT:
      return 2;
    case SHMEM_CMP_GE:
      return 3;
    case SHMEM_CMP_LT:
      return 4;
    case SHMEM_CMP_LE:
      return 5;
    default:
      return -1;
  }
}

int main(void) {
  int major = 0, minor = 0, initialized = 1;
  CHECK(teams[0] != teams[1] && teams[1] != teams[2] && teams[0] != teams[2]);
  CHECK(contexts[0] != contexts[1]);
  CHECK(number_of(SHMEM_CMP_LE) == 5);
  CHECK(SHMEM_THREAD_SINGLE < SHMEM_THREAD_FUNNELED &&
        SHMEM_THREAD_FUNNELED < SHMEM_THREAD_SERIALIZED);
  CHECK(SHMEM_THREAD_SERIALIZED < SHMEM_THREAD_MULTIPLE);
  CHECK((SHMEM_CTX_PRIVATE & SHMEM_CTX_SERIALIZED) == 0 &&
        (SHMEM_CTX_PRIVATE & SHMEM_CTX_NOSTORE) == 0);
  CHECK((SHMEM_MALLOC_ATOMICS_REMOTE & SHMEM_MALLOC_SIGNAL_REMOTE) == 0 &&
        SHMEM_MALLOC_ATOMICS_REMOTE != 0);
  CHECK(SHMEM_SIGNAL_SET != SHMEM_SIGNAL_ADD);
  /* These need no job. */
  shmem_info_get_version(&major, &minor);
  CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION && major == 1 && minor == 6);
  shmem_info_get_name(name);
  CHECK(name[0] != 0);
  shmem_query_initialized(&initialized);
  CHECK(initialized == 0);
  return 0;
}
