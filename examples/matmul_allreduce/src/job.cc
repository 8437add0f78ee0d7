// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include <shmem.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "fused.h"
#include "gemm.h"
#include "pages.h"
#include "separate.h"
#include "stopwatch.h"

namespace matmul {
namespace {

// When the user does not say: about this many seconds for all repetitions.
constexpr double kEnoughSeconds = 6;
constexpr int kMostRepeats = 5;

// A and B of one rank.
struct Inputs {
  Pages a, b;
  bool is_valid() const { return a.is_valid() && b.is_valid(); }
};

Pages make_matrix(const RandomMatrix& matrix, std::uint64_t rows, std::uint64_t columns) {
  std::size_t row_bytes = columns * element_bytes(matrix.type);
  Pages pages(rows * row_bytes);
  if (!pages.is_valid()) return pages;
  for (std::uint64_t row = 0; row < rows; ++row)
    matrix.fill(row, 0, columns, pages.as<std::byte>() + row * row_bytes);
  return pages;
}

Inputs make_inputs(const JobSpec& spec, const Place& place) {
  auto rank = static_cast<std::uint64_t>(place.rank);
  return {make_matrix(spec.matrix(rank, MatrixName::kA), spec.shape.m, spec.shape.k),
          make_matrix(spec.matrix(rank, MatrixName::kB), spec.shape.k, spec.shape.n)};
}

// Overwrites a result with NaNs, so that what a run leaves out is found.
void spoil(const Workspace& workspace, Form form) {
  std::memset(workspace.result(form), 0xff, workspace.result_bytes());
  shmem_barrier_all();
}

// Runs both forms, in turn; all measurements of one repetition are close in time.
class Measurement {
 public:
  Measurement(const Workspace& workspace, SeparateAllreduce& separate, FusedAllreduce& fused)
      : workspace_(workspace), separate_(separate), fused_(fused) {}

  bool is_ok() const { return is_ok_; }

  // Seconds for the whole of it.
  double run_once(Times& times) {
    Stopwatch all;
    spoil(workspace_, Form::kSeparate);
    Stopwatch separate;
    separate_.multiply();
    times.multiply = separate.seconds();
    shmem_barrier_all();
    Stopwatch reduce;
    if (separate_.reduce() != 0) is_ok_ = false;
    times.reduce = reduce.seconds();
    times.separate = separate.seconds();
    spoil(workspace_, Form::kFused);
    Stopwatch fused;
    if (!fused_.run()) is_ok_ = false;
    times.fused = fused.seconds();
    shmem_barrier_all();
    return all.seconds();
  }

  Times run(int repetitions) {
    std::vector<double> multiply, reduce, separate, fused;
    for (int i = 0; i < repetitions; ++i) {
      Times times;
      run_once(times);
      multiply.push_back(times.multiply);
      reduce.push_back(times.reduce);
      separate.push_back(times.separate);
      fused.push_back(times.fused);
    }
    return {median(multiply), median(reduce), median(separate), median(fused)};
  }

 private:
  const Workspace& workspace_;
  SeparateAllreduce& separate_;
  FusedAllreduce& fused_;
  bool is_ok_ = true;
};

int repetitions_for(double seconds) {
  return std::clamp(static_cast<int>(kEnoughSeconds / std::max(seconds, 1e-3)), 1, kMostRepeats);
}

}  // namespace

int agree(int number) {
  auto* memory = static_cast<int*>(shmem_calloc(2, sizeof(int)));
  if (memory == nullptr) shmem_global_exit(1);
  memory[0] = number;
  if (shmem_int_broadcast(SHMEM_TEAM_WORLD, memory + 1, memory, 1, 0) != 0) shmem_global_exit(1);
  int agreed = memory[1];
  shmem_free(memory);
  return agreed;
}

Outcome run_job(const Options& options, const JobSpec& spec, const Place& place,
                const MemoryNeed& need) {
  Outcome outcome;
  Workspace workspace(need);
  if (!workspace.is_valid()) {
    outcome.failure = "the symmetric heap has no room";
    outcome.is_everywhere = true;
    return outcome;
  }
  TilePlan tiles(spec.shape, spec.ranks);
  Inputs inputs = make_inputs(spec, place);
  if (!inputs.is_valid()) return outcome.failure = "no memory for A and B", outcome;
  const Gemm::Input input{spec.shape, {spec.type, options.blas}, inputs.a.data(), inputs.b.data()};
  Gemm gemm(input, tiles);
  SeparateAllreduce separate(spec, place, tiles, gemm, workspace);
  FusedAllreduce fused({spec, place, tiles, workspace, options.send}, input, gemm, options.blocks);
  if (!gemm.is_valid() || !fused.is_valid())
    return outcome.failure = "no memory for panels", outcome;

  // The first run touches all memory for the first time and is not counted.
  Measurement measurement(workspace, separate, fused);
  Times first;
  double seconds = measurement.run_once(first);
  outcome.repetitions = options.repeat > 0 ? options.repeat : agree(repetitions_for(seconds));
  outcome.library = gemm.library();
  outcome.times = measurement.run(outcome.repetitions);
  if (!measurement.is_ok())
    return outcome.failure = "the library's reduction or the kernel failed", outcome;
  outcome.verdict = check_results(spec, place, workspace);
  if (!outcome.verdict.is_complete) outcome.failure = "no memory for the verification";
  return outcome;
}

}  // namespace matmul
