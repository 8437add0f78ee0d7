/* SPDX-License-Identifier: Apache-2.0
 * CHECK for C programs: says what did not hold and where, and ends the program with code 1. With
 * CHECK_REASON defined, a call that gives the library's last error, it says that, too. */
#ifndef MEMSPAN_TESTS_SUPPORT_CHECK_H
#define MEMSPAN_TESTS_SUPPORT_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#ifndef CHECK_REASON
#define CHECK_REASON() ""
#endif

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: not true: %s %s\n", __FILE__, __LINE__, #condition, CHECK_REASON()); \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

#endif
