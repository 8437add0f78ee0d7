/* SPDX-License-Identifier: Apache-2.0
 * CHECK for C programs: says what did not hold and where, and ends the program with code 1. */
#ifndef MEMSPAN_TESTS_CAPI_CHECK_H
#define MEMSPAN_TESTS_CAPI_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

#endif
