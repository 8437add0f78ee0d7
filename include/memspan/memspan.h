/* SPDX-License-Identifier: Apache-2.0
 *
 * What memspan has beside the interfaces that it implements. C99 or C++11.
 */
#ifndef MEMSPAN_MEMSPAN_H
#define MEMSPAN_MEMSPAN_H

#ifdef __cplusplus
extern "C" {
#endif

/* Why the last call of this thread that returned an error code (or NULL) did so: one line for a
 * person. Never NULL; empty before the first failure. Valid until this thread's next failure. */
const char* memspan_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_MEMSPAN_H */
