// SPDX-License-Identifier: Apache-2.0
#include "cell.h"

#include <mpi.h>

#include <algorithm>
#include <cstdio>

namespace bench {
namespace {

constexpr int kLeastCalls = 3, kMostCalls = 20'000;

struct Side {
  const char* name;
  const Call* call;
  int calls;                  // of a batch
  std::vector<double> times;  // us of a call, of each round
};

// Seconds of a batch: those of the slowest process.
double time_batch(const Call& call, int calls, bool calls_here) {
  if (calls_here) call();
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (int i = 0; calls_here && i < calls; ++i) call();
  double took = MPI_Wtime() - began, slowest = 0;
  MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

// So many calls that a batch takes long enough; the same on all, as all see the same times.
int calls_of_a_batch(const Side& side, double least_seconds, bool calls_here) {
  int calls = kLeastCalls;
  for (;;) {
    const double took = time_batch(*side.call, calls, calls_here);
    if (took >= least_seconds || calls >= kMostCalls) return calls;
    const double wanted = took > 0 ? calls * least_seconds / took : kMostCalls;
    calls = static_cast<int>(
        std::clamp(1.1 * wanted, calls + 1.0, std::min<double>(kMostCalls, 20.0 * calls)));
  }
}

void print(const Cell& cell, const Side& side) {
  std::printf("%s %zu %s us", cell.name.c_str(), cell.size, side.name);
  for (const double time : side.times) std::printf(" %.4f", time);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

bool measure(const Cell& cell, const Options& options, const Processes& processes) {
  if (processes.rank == 0) {
    std::printf("begin %s %zu\n", cell.name.c_str(), cell.size);
    std::fflush(stdout);
  }
  int is_same = !options.side.empty() || cell.check() ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &is_same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (is_same == 0) {
    if (processes.rank == 0)
      std::printf("# ERROR %s %zu: the results differ\n", cell.name.c_str(), cell.size);
    return false;
  }
  const bool calls_here = !cell.is_one_sided || processes.rank == 0;
  std::vector<Side> sides;
  const auto add = [&](const char* name, const Call& call) {
    if (call && (options.side.empty() || options.side == name))
      sides.push_back({name, &call, 0, {}});
  };
  add("memspan", cell.ours);
  add("mpi", cell.rival);
  add("bare", cell.bare);
  for (Side& side : sides) side.calls = calls_of_a_batch(side, options.least_seconds, calls_here);
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      Side& side = sides[round % 2 == 0 ? i : sides.size() - 1 - i];
      side.times.push_back(time_batch(*side.call, side.calls, calls_here) / side.calls * 1e6);
    }
  }
  for (const Side& side : sides)
    if (processes.rank == 0) print(cell, side);
  return true;
}

}  // namespace bench
