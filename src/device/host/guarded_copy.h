// SPDX-License-Identifier: Apache-2.0
// Copies from and to memory that may not be there: a buffer that the program has unmapped, or
// shared memory that its owner has made smaller. A fault (SIGSEGV, SIGBUS) in a guarded copy ends
// that copy and nothing else. All other faults go to the handler that was there before ours.
//
//   setjmp ─► copy ─► done
//      ▲        │ fault: the handler returns into a function that jumps back, so that the
//      └────────┘        signal's frame is given up as after any signal
//
// A guard without a fault takes 2 ns; a row of copies needs one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace memspan {

// Where a copy faulted. A value.
struct CopyFault {
  std::uintptr_t address = 0;  // 0: the processor did not say
  bool is_forbidden = false;   // there is memory, but it may not be read or not be written

  bool is_in(const void* begin, std::size_t bytes) const {
    return address - reinterpret_cast<std::uintptr_t>(begin) < bytes;
  }
};

// Installs the handlers, once in a process; later calls do nothing. A handler that the program
// installs afterwards replaces them: faults in copies are its business then. Thread-safe.
void catch_copy_faults();

// Runs `copy(state)`. When it faults, it ends there, without destructors: it must hold nothing, and
// what it counts has to be volatile. Guards do not nest.
std::optional<CopyFault> run_guarded(void (*copy)(void* state), void* state);

// The same for a callable.
template <typename Copy>
std::optional<CopyFault> run_guarded(Copy& copy) {
  return run_guarded([](void* state) { (*static_cast<Copy*>(state))(); },
                     const_cast<void*>(static_cast<const volatile void*>(std::addressof(copy))));
}

}  // namespace memspan
