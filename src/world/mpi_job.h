// SPDX-License-Identifier: Apache-2.0
// A job that MPI started, as a way for its processes to meet. memspan links no MPI: it uses the
// loaded one, or loads one by name.
#pragma once

#include <cstdint>

#include "core/status.h"

namespace memspan::inline world {

// MPI in the same process, which also uses the launcher's connection.

enum class MpiState {
  kAbsent,  // no MPI library is loaded
  kNotInitialized,
  kInitialized,
  kFinalized,
};
// Asks the loaded library; loads nothing.
MpiState mpi_state();

// A value. One thread at a time, as the MPI was initialized for.
class MpiJob {
 public:
  // `communicator` is the address of an MPI_Comm, or null for all. If MPI is not initialized, this
  // initializes it, and an exit handler finalizes it. kNotSupported: no MPI is found, or it has
  // been finalized.
  static Result<MpiJob> join(const void* communicator);

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Returns rank 0's text, up to kMostBytes bytes. Collective.
  static constexpr std::size_t kMostBytes = 1000;
  Result<std::string> broadcast(const std::string& text) const;

 private:
  // An int in the ABI of MPICH, a pointer in Open MPI's: a register holds both.
  using Handle = std::uintptr_t;
  using Broadcast = int (*)(void* data, int count, Handle type, int root, Handle communicator);

  Handle communicator_ = 0;
  Handle byte_ = 0;
  Broadcast broadcast_ = nullptr;
  int rank_ = -1;
  int size_ = 0;
};

}  // namespace memspan::inline world
