// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder do with codes: 0 is good, another ends the function with 1 and a
// line on stderr.
#ifndef MEMSPAN_EXAMPLES_CANN_CHECK_H
#define MEMSPAN_EXAMPLES_CANN_CHECK_H

#include <cstdio>

#include "acl/acl.h"

#define CHECK(call)                                                                  \
  do {                                                                               \
    if (const int failed = (call); failed != 0) {                                    \
      std::fprintf(stderr, "%s gave %d: %s\n", #call, failed, aclGetRecentErrMsg()); \
      return 1;                                                                      \
    }                                                                                \
  } while (0)

#endif
