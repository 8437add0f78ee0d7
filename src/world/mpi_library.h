// SPDX-License-Identifier: Apache-2.0
// MPI in the same process: it uses the launcher's connection, too.
#pragma once

namespace memspan {

enum class MpiState {
  kAbsent,  // no MPI library is loaded
  kNotInitialized,
  kInitialized,
  kFinalized,
};
// By asking whichever library is loaded; nothing is loaded for it.
MpiState mpi_state();
// For dlsym(): a loaded MPI library, also one whose symbols are not global, as of an interpreter's
// module; else RTLD_DEFAULT.
void* mpi_library();

}  // namespace memspan
