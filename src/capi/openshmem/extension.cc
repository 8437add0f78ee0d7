// SPDX-License-Identifier: Apache-2.0
// What <shmemx.h> adds. Extensions have no profiling twins.
#include <openshmem/shmemx.h>

#include "capi/failures.h"

extern "C" __attribute__((visibility("default"))) int shmemx_set_error_handler(
    shmemx_error_handler_t handler) {
  memspan::capi::set_error_handler(handler);
  return 0;
}
