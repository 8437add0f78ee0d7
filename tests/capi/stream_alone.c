/* SPDX-License-Identifier: Apache-2.0
 * The header of streams by itself. */
#include <memspan/stream.h>

int32_t stream_alone_uses_it(void);
int32_t stream_alone_uses_it(void) {
  memspan_stream_t stream = 0;
  return memspan_stream_create(&stream) + memspan_stream_synchronize(stream, 0) +
         MEMSPAN_STREAM_BUSY;
}
