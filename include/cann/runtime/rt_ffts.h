/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's words that programs next to kernels use. There is nothing between cores to
 * configure here. C99 or C++11.
 */
#ifndef MEMSPAN_CANN_RT_FFTS_H
#define MEMSPAN_CANN_RT_FFTS_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t rtError_t;
#define RT_ERROR_NONE 0

/* 0 and 0. */
static inline rtError_t rtGetC2cCtrlAddr(uint64_t* address, uint32_t* length) {
  if (address != NULL) *address = 0;
  if (length != NULL) *length = 0;
  return RT_ERROR_NONE;
}

#endif
