// SPDX-License-Identifier: Apache-2.0
// Calls without memory: the n-th operator new of the calling thread fails, or all from there on,
// for n = 1, 2, 3, ... until the call needs fewer. It then returns its code, or NULL, and the
// message names it; the next call works.
#pragma once

namespace no_memory {

struct Case {
  const char* function;  // whose name the message begins with
  int expected;          // what `call` returns without memory
  int (*call)();         // only the call; 0: it succeeded
  void (*undo)();        // after a success; null: nothing
};

// Counts wrong results in wrong(). sweep_once(): only the n-th fails, for calls that make what only
// can be destroyed with memory.
void sweep(const Case& which);
void sweep_once(const Case& which);
template <int kCases>
void sweep_all(const Case (&cases)[kCases]) {
  for (const Case& one : cases) sweep(one);
}
void check(bool is_right, const char* what);
int wrong();

// From now on, the calling thread has no memory.
void take_all();

void check_cann();  // of no_memory_cann.cc

}  // namespace no_memory
