/* SPDX-License-Identifier: Apache-2.0
 * The older names of the headers, and each of them twice. */
#include <memspan/kernel_calls.h>
#include <memspan/kernel_state.h>
#include <memspan/memspan.h>
#include <mpp/shmem.h>
#include <mpp/shmemx.h>
#include <shmem.h>
#include <shmemx.h>

int headers_alone_uses_them(void);
int headers_alone_uses_them(void) {
  return shmem_my_pe() + (memspan_last_error()[0] == 0);
}
