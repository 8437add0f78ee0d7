// SPDX-License-Identifier: Apache-2.0
// The operations that are compared. A size is the bytes of the larger of what one process gives and
// gets: all it gives to an all-to-all, all it gets of an all-gather.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cell.h"

namespace bench {

// What one library does next to the MPI, its memory and its connections with it. Made and destroyed
// by all processes together.
class Operations {
 public:
  virtual ~Operations() = default;
  // `name` is one of the family's, `size` at most what the maker was told.
  virtual Cell cell(const std::string& name, std::size_t size) = 0;
};

struct Family {
  std::vector<std::string> names;
  std::unique_ptr<Operations> (*make)(const Processes& processes, std::size_t largest);
};
// Collectives of a group on ordinary memory: allreduce, broadcast, ...
Family group_operations();
// OpenSHMEM: collectives on the symmetric heap, on which the MPI works as well; put and get, whose
// remote memory is the heap and a window of MPI_Win_allocate.
Family openshmem_operations();

// ---- for both

// Ends the job.
[[noreturn]] void give_up(const std::string& why);
// Ends it when a call of memspan's failed, with its reason.
void must(const char* call, int code);
// Memory with every page there.
std::unique_ptr<char[]> ordinary_memory(std::size_t bytes);
// Small integers, other ones on every rank, whose sums are exact.
void fill_with_floats(void* memory, std::size_t bytes, int rank);
// Whether both calls leave the same in `result`, and write all of it; for collective calls.
bool leave_the_same(const Call& ours, const Call& rival, void* result, std::size_t bytes);

}  // namespace bench
