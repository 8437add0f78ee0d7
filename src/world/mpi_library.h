// SPDX-License-Identifier: Apache-2.0
// MPI in the same process, which also uses the launcher's connection.
#pragma once

namespace memspan {

enum class MpiState {
  kAbsent,  // no MPI library is loaded
  kNotInitialized,
  kInitialized,
  kFinalized,
};
// Asks the loaded library; loads nothing.
MpiState mpi_state();
// For dlsym(): a loaded MPI library, even if its symbols are not global, as in an interpreter's
// module; else RTLD_DEFAULT.
void* mpi_library();

}  // namespace memspan
