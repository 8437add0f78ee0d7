// SPDX-License-Identifier: Apache-2.0
#include "cell.h"

#include <mpi.h>

#include <algorithm>
#include <cstdio>

namespace bench {
namespace {

constexpr int kLeastCalls = 3, kMostCalls = 20'000, kLeastRounds = 3;
constexpr double kLongSeconds = 0.1;  // such a call is a batch by itself
// memspan chooses its way to copy among the first calls of a size (docs/design/0029).
constexpr int kFirstCalls = 80;

struct Side {
  const char* name;
  const Call* call;
  int calls;                  // of a batch
  double seconds;             // of a batch, about
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
void choose_calls(Side& side, double least_seconds, bool calls_here) {
  side.calls = 1;
  side.seconds = time_batch(*side.call, side.calls, calls_here);
  if (side.seconds >= kLongSeconds) return;
  side.calls = kLeastCalls;
  for (;;) {
    side.seconds = time_batch(*side.call, side.calls, calls_here);
    if (side.seconds >= least_seconds || side.calls >= kMostCalls) return;
    const double wanted = side.seconds > 0 ? side.calls * least_seconds / side.seconds : kMostCalls;
    side.calls = static_cast<int>(std::clamp(1.1 * wanted, side.calls + 1.0,
                                             std::min<double>(kMostCalls, 20.0 * side.calls)));
  }
}

// As many as were asked for, unless they take longer than the cell may.
int choose_rounds(const std::vector<Side>& sides, const Options& options) {
  double seconds = 0;  // of a round, with the calls that are not timed
  for (const Side& side : sides) seconds += side.seconds * (side.calls + 1) / side.calls;
  if (seconds * options.rounds <= options.budget_seconds) return options.rounds;
  return std::clamp(static_cast<int>(options.budget_seconds / seconds),
                    std::min(kLeastRounds, options.rounds), options.rounds);
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
      sides.push_back({name, &call, 0, 0, {}});
  };
  add("memspan", cell.ours);
  add("mpi", cell.rival);
  add("bare", cell.bare);
  for (int i = 0; cell.is_one_sided && calls_here && i < kFirstCalls; ++i) cell.ours();
  for (Side& side : sides) choose_calls(side, options.least_seconds, calls_here);
  const int rounds = choose_rounds(sides, options);
  for (int round = 0; round < rounds; ++round) {
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
