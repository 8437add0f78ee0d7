// SPDX-License-Identifier: Apache-2.0
// What SIGUSR2 makes a member of a job or pool print to stderr: for each of its threads that waits
// the call, for whom and how long, and the stack of every thread that has made calls.
//
//   PE 0 (process 17): thread 17 waits in shmem_barrier_all for PE 1, for 12.3 s
//   PE 0 thread 4711:   #0 libmemspan.so(_ZN7memspan8SlowPath5sleepEv+0x4d)
#pragma once

#include <string_view>

#include "core/status.h"
#include "node/counters.h"

namespace memspan {

// At the first membership of a process. Only where SIGUSR2 would end the process, so that a
// program's own handler stays, and one that it sets later takes its place; MEMSPAN_STACKS=0: not at
// all.
Status answer_stack_requests(MemberKind kind, int rank);

}  // namespace memspan
