/* SPDX-License-Identifier: Apache-2.0
 *
 * Extensions to OpenSHMEM, all named shmemx_ or SHMEMX_.
 */
#ifndef MEMSPAN_OPENSHMEM_SHMEMX_H
#define MEMSPAN_OPENSHMEM_SHMEMX_H

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called by the call that noticed the death of another PE, with the call's name, the PE that died
 * first (numbered as in SHMEM_TEAM_WORLD) and a message, all valid during the call only. Runs on
 * the calling thread and may call the library. */
typedef void (*shmemx_error_handler_t)(const char* call, int pe, const char* message);

/* Without a handler (NULL, as at start) the death of a PE ends the job. With one, each call that
 * cannot be completed because of it calls the handler and returns: without its effect, with the
 * value of a failure where it has one (NULL, non-zero). Calls that do not need the dead PE still
 * work: put, get and atomics among the living, and collectives of teams without the dead PE. The
 * memory of the dead stays readable until the job ends. shmem_finalize then returns without waiting
 * for other PEs. A mistake of the program's own still ends it. Start the job with `oshrun
 * --keep-going`, or oshrun ends it. Thread-safe; at any time. Returns 0. */
int shmemx_set_error_handler(shmemx_error_handler_t handler);

/* After a death: a team of the members of `team` that live, in the same order. Collective over
 * those, whether `team` still meets or not; `team` may be SHMEM_TEAM_WORLD. Returns 0; or not 0,
 * with *new_team SHMEM_TEAM_INVALID, when another PE died during the call (the handler was called;
 * call this function again) or memory is short. shmem_team_destroy ends the new team as any other.
 * Only together with shmemx_set_error_handler. One thread at a time per team. */
int shmemx_team_shrink(shmem_team_t team, shmem_team_t* new_team);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_OPENSHMEM_SHMEMX_H */
