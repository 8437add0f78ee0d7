// SPDX-License-Identifier: Apache-2.0
// Copies from and to memory that may be missing: a buffer that the program has unmapped, or shared
// memory that its owner has shrunk. A fault (SIGSEGV, SIGBUS) in a guarded copy ends only that
// copy. All other faults are passed to the handler that was installed before ours.
//
//   setjmp ─► copy ─► done
//      ▲        │ fault: the handler returns into a function that jumps back, so that the
//      └────────┘        signal's frame is given up as after any signal
//
// A guard without a fault takes 2 ns; a series of copies needs one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace memspan::inline device {

// A fault of a copy. A value.
struct CopyFault {
  std::uintptr_t address = 0;  // 0: the processor did not report it
  bool is_forbidden = false;   // memory that may not be read or may not be written

  bool is_in(const void* begin, std::size_t bytes) const {
    return address - reinterpret_cast<std::uintptr_t>(begin) < bytes;
  }
};

// Installs the handlers once per process; later calls do nothing. A handler that the program
// installs afterwards replaces them and must handle faults in copies itself. Thread-safe.
void catch_copy_faults();

// Runs `copy(state)`. A fault ends it without destructors, so it must hold nothing, and its
// counters must be volatile. Guards do not nest.
std::optional<CopyFault> run_guarded(void (*copy)(void* state), void* state);

// Runs a callable in the same way.
template <typename Copy>
std::optional<CopyFault> run_guarded(Copy& copy) {
  return run_guarded([](void* state) { (*static_cast<Copy*>(state))(); },
                     const_cast<void*>(static_cast<const volatile void*>(std::addressof(copy))));
}

// Finds missing memory of this process before an access that cannot report whose mistake it is,
// such as that of a carrier. Touches every page and changes nothing. Returns the fault that a copy
// would meet, if any.
enum class MemoryAccess { kRead, kWrite };
std::optional<CopyFault> find_fault(std::byte* begin, std::uint64_t bytes, MemoryAccess access);

}  // namespace memspan::inline device
