/* SPDX-License-Identifier: Apache-2.0
 * What the tests of groups share: the library's last error, and a group of all members. */
#ifndef MEMSPAN_TESTS_CAPI_GROUP_JOB_H
#define MEMSPAN_TESTS_CAPI_GROUP_JOB_H

#include <memspan/group.h>
#include <memspan/memspan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_REASON memspan_last_error
#include "support/check.h"
#include "support/processes.h"

enum { kTimeoutMs = 30 * 1000 };

/* Whether the last failure says this. */
static inline int says(const char* text) {
  return strstr(memspan_last_error(), text) != NULL;
}

/* MEMSPAN_TEST_HOSTS parts the members into so many simulated hosts, in turn. */
static inline int test_hosts(void) {
  const char* hosts = getenv("MEMSPAN_TEST_HOSTS");
  return hosts == NULL ? 1 : atoi(hosts);
}
static inline int on_one_host(int members) {
  return test_hosts() == 1 || members == 1;
}

/* Joins the group of which this member has the rank; the talk goes on in the next group. */
static inline memspan_group_t join(struct talk* talk) {
  memspan_group_t group = NULL;
  CHECK(memspan_group_create(talk->rank, talk->members, exchange, talk, kTimeoutMs, &group) ==
        SMEM_OK);
  return group;
}

#endif
