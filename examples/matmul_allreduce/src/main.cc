// SPDX-License-Identifier: Apache-2.0
// A product of matrices whose sum over all ranks ends on every rank, fused: while one tile is
// multiplied, the ones before it are being reduced. See ../README.md.
//
// Exit codes: 0 every element is right; 1 it is not, or the job cannot run; 2 a wrong option.
#include <shmem.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "blas.h"
#include "job.h"
#include "memory_need.h"
#include "options.h"
#include "report.h"

namespace {

using namespace matmul;

constexpr int kFailed = 1;
constexpr int kWrongUse = 2;
constexpr std::uint64_t kMostRanks = 64;

// The heap's size must be known before the number of ranks is: enough for any. It is only
// reserved; what the job takes is checked when the number is known. The library refuses a heap
// larger than all memory, so a job that is too large gets one that is not, and is refused then.
void choose_heap_size(const Shape& shape, ElementType type) {
  std::uint64_t heap = 0;
  for (std::uint64_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    auto need = memory_need(shape, {type}, ranks);
    if (!need) return;
    heap = std::max(heap, need->heap());
  }
  std::string text = std::to_string(std::min(heap, total_memory() / 8 * 7));
  setenv("SHMEM_SYMMETRIC_SIZE", text.c_str(), 0);
}

// Why the job does not fit on this host; empty when it does. Asked on rank 0 only: others may see
// other figures.
std::string refusal(const JobSpec& spec, const Options& options) {
  auto need = memory_need(spec.shape, {spec.type, options.blas}, spec.ranks, options.blocks);
  if (!need) return "the matrices are larger than any memory: M, K and N overflow 62 bits of bytes";
  MemoryLimit limit = available_memory();
  const auto here = static_cast<std::uint64_t>(shmem_team_n_pes(SHMEM_TEAM_SHARED));
  if (need->total * here <= limit.bytes) return {};
  return "the job needs " + format_size(need->total * here) + " (" + std::to_string(here) +
         (here == 1 ? " rank, " : " ranks, ") + format_size(need->total) + " each), but " +
         limit.source + " leaves " + format_size(limit.bytes);
}

// One line, from rank 0; the others only wait until it is written.
int leave(const Place& place, const std::string& line, int code) {
  if (place.rank == 0) std::fprintf(stderr, "matmul_allreduce: %s\n", line.c_str());
  shmem_barrier_all();
  shmem_finalize();
  return code;
}

int show_help(const Place& place) {
  if (place.rank == 0) std::fputs(kUsage, stdout);
  shmem_finalize();
  return 0;
}

int run(const Options& options, const Shape& shape, const Place& place) {
  JobSpec spec{shape, options.type, static_cast<std::uint64_t>(place.ranks), options.seed};
  std::string why = place.rank == 0 ? refusal(spec, options) : std::string();
  if (agree(why.empty() ? 0 : 1) != 0) return leave(place, why, kFailed);
  MemoryNeed need = *memory_need(shape, {spec.type, options.blas}, spec.ranks, options.blocks);
  Outcome outcome = run_job(options, spec, place, need);
  if (outcome.failure != nullptr) {
    std::string line = std::string(outcome.failure) + ": the job needs " +
                       format_size(need.heap()) + " of it on each rank, " +
                       format_size(need.total) + " in all";
    if (outcome.is_everywhere) return leave(place, line, kFailed);
    std::fprintf(stderr, "matmul_allreduce: rank %d: %s\n", place.rank, line.c_str());
    shmem_global_exit(kFailed);
  }
  bool are_right = print_report(options, spec, place, outcome);
  shmem_finalize();
  return are_right ? 0 : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::string wrong = parse_options(argc, argv, options);
  if (wrong.empty() && options.blas == Blas::kOneDnn && !has_onednn())
    wrong = "option -blas onednn: this program was built without oneDNN";
  Shape shape{options.m, options.k, options.n};
  use_one_blas_thread();
  if (wrong.empty() && !options.help) choose_heap_size(shape, options.type);
  if (shmem_init_thread(SHMEM_THREAD_SINGLE, nullptr) != 0) {
    std::fputs("matmul_allreduce: the job could not start\n", stderr);
    return kFailed;
  }
  Place place{shmem_my_pe(), shmem_n_pes()};
  if (!wrong.empty()) return leave(place, wrong + " (-help explains)", kWrongUse);
  if (options.help) return show_help(place);
  return run(options, shape, place);
}
