// SPDX-License-Identifier: Apache-2.0
// A cell of the table: one operation and size, by memspan and by the MPI in the same processes.
//
// A round times a batch of calls of each side, one side after the other; who goes first changes
// with every round. A batch follows a barrier and a call that is not timed, and takes as long as
// its slowest process does.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace bench {

struct Options {
  std::vector<std::string> only;  // operations; empty: all
  std::vector<std::size_t> sizes = {8, 1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 64 << 20};
  int rounds = 9;
  double least_seconds = 0.003;  // of a batch
  double budget_seconds = 10;    // of a cell: where calls take long there are fewer rounds
  bool binds = false;
  std::string side;   // times only this one: "memspan" or "mpi"; empty: both and the bare way
  std::string after;  // "NAME/SIZE" of a cell: only those after it; empty: all
};

// Who takes part: ranks of MPI_COMM_WORLD, which memspan's groups and PEs have, too.
struct Processes {
  int rank, count;
};

using Call = std::function<void()>;

struct Cell {
  std::string name;
  std::size_t size;
  Call ours, rival;
  Call bare;  // the least that has to be done, without any library; may be empty
  // Collective: does both once and says whether both did the same, and something.
  std::function<bool()> check;
  bool is_one_sided = false;  // rank 0 calls, the others wait in MPI_Barrier
};

// Collective. Rank 0 prints "begin NAME SIZE", and then "NAME SIZE SIDE us VALUE..." for each side,
// a value for each round; or a line that begins with "# ERROR", with false, when the two sides did
// not do the same. With one side alone they are not compared.
bool measure(const Cell& cell, const Options& options, const Processes& processes);

}  // namespace bench
