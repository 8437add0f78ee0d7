// SPDX-License-Identifier: Apache-2.0
// SIGUSR2 makes a member of a job or pool print its state to stderr: the call, awaited peer and
// time of each waiting thread, and the stack of every thread that has made calls.
//
//   PE 0 (process 17): thread 17 waits in shmem_barrier_all for PE 1, for 12.3 s
//   PE 0 thread 4711:   #0 libmemspan.so(_ZN7memspan8SlowPath5sleepEv+0x4d)
#pragma once

#include "observe/counters.h"

namespace memspan {

// Call it at the first membership of a process. Installs a handler only if SIGUSR2 would end the
// process, so a program's own handler stays, as does an ignored SIGUSR2. A handler that the program
// sets later replaces it.
Status answer_stack_requests(MemberKind kind, int rank);

}  // namespace memspan
