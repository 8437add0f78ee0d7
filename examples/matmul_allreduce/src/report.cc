// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <shmem.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <string>

namespace matmul {
namespace {

constexpr std::size_t kTimes = 4;

// Every rank's times, on every rank. Collective.
std::vector<Times> gather(const Times& mine, const Place& place) {
  auto ranks = static_cast<std::size_t>(place.ranks);
  auto* memory = static_cast<double*>(shmem_calloc((ranks + 1) * kTimes, sizeof(double)));
  if (memory == nullptr) shmem_global_exit(1);
  const double values[kTimes] = {mine.multiply, mine.reduce, mine.separate, mine.fused};
  std::copy_n(values, kTimes, memory);
  if (shmem_double_fcollect(SHMEM_TEAM_WORLD, memory + kTimes, memory, kTimes) != 0)
    shmem_global_exit(1);
  std::vector<Times> all;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const double* row = memory + (rank + 1) * kTimes;
    all.push_back({row[0], row[1], row[2], row[3]});
  }
  shmem_free(memory);
  return all;
}

void print_head(const Options& options, const JobSpec& spec, const Outcome& outcome) {
  TilePlan tiles(spec.shape, spec.ranks);
  const std::string kernel =
      options.blocks == 0 ? "" : "a kernel of " + std::to_string(options.blocks) + " blocks, ";
  std::printf(
      "matmul_allreduce: %" PRIu64 " %s, M %" PRIu64 " K %" PRIu64 " N %" PRIu64
      " %s, seed %" PRIu64 ", %s, %" PRIu64 " tiles of %" PRIu64 " x %" PRIu64 ", %smedian of %d\n",
      spec.ranks, spec.ranks == 1 ? "rank" : "ranks", spec.shape.m, spec.shape.k, spec.shape.n,
      element_name(spec.type).data(), spec.seed, outcome.library, tiles.tiles(), tiles.tile_rows(),
      tiles.tile_columns(), kernel.c_str(), outcome.repetitions);
}

void print_rank(const JobSpec& spec, std::size_t rank, const Times& times, bool is_right) {
  double operations = 2.0 * static_cast<double>(spec.shape.m) * static_cast<double>(spec.shape.k) *
                      static_cast<double>(spec.shape.n);
  std::printf("rank %zu: %" PRIu64 "x%" PRIu64 "x%" PRIu64
              " %s  matmul %.3f ms %.1f GFLOP/s  "
              "reduction %.3f ms %.2f GB/s  fused %.3f ms %.1f GFLOP/s (%.2f of separate)  %s\n",
              rank, spec.shape.m, spec.shape.k, spec.shape.n, element_name(spec.type).data(),
              times.multiply * 1e3, operations / times.multiply * 1e-9, times.reduce * 1e3,
              reduction_bytes(spec) / times.reduce * 1e-9, times.fused * 1e3,
              operations / times.fused * 1e-9, times.fused / times.separate,
              is_right ? "PASS" : "FAIL");
}

// The bounds of overlap. The slowest rank determines each time.
void print_bounds(const std::vector<Times>& ranks) {
  Times slowest;
  for (const Times& times : ranks) {
    slowest.multiply = std::max(slowest.multiply, times.multiply);
    slowest.reduce = std::max(slowest.reduce, times.reduce);
    slowest.fused = std::max(slowest.fused, times.fused);
  }
  std::printf(
      "bounds: %.3f ms without overlap (matmul + reduction), %.3f ms with full overlap (the longer "
      "of the two); fused %.3f ms\n",
      (slowest.multiply + slowest.reduce) * 1e3, std::max(slowest.multiply, slowest.reduce) * 1e3,
      slowest.fused * 1e3);
}

void print_form(const JobSpec& spec, const char* name, const Comparison& all) {
  if (spec.type == ElementType::kInt32) {
    std::printf("%s: %" PRIu64 " elements compared exactly, %" PRIu64 " wrong\n", name,
                all.elements, all.wrong);
    return;
  }
  double norm =
      all.reference_squares > 0 ? std::sqrt(all.error_squares / all.reference_squares) : 0;
  std::printf("%s: %" PRIu64 " elements compared with float64, %" PRIu64
              " wrong; largest error %.3f of its bound, norm of the error %.2e of the result's\n",
              name, all.elements, all.wrong, all.worst, norm);
}

// Each rank names the first wrong element that it found.
void print_wrong(const Place& place, const char* name, const Comparison& mine) {
  if (mine.got == mine.expected) return;
  std::fprintf(stderr, "rank %d: %s: element (%" PRIu64 ", %" PRIu64 ") is %.9g, expected %.9g\n",
               place.rank, name, mine.row, mine.column, mine.got, mine.expected);
}

}  // namespace

double reduction_bytes(const JobSpec& spec) {
  auto ranks = static_cast<double>(spec.ranks);
  double elements = static_cast<double>(spec.shape.m) * static_cast<double>(spec.shape.n);
  auto each = static_cast<double>(kPartialBytes + element_bytes(spec.type));
  return (ranks - 1) / ranks * elements * each;
}

bool print_report(const Options& options, const JobSpec& spec, const Place& place,
                  const Outcome& outcome) {
  std::vector<Times> times = gather(outcome.times, place);
  const FormVerdict& separate = outcome.verdict.separate;
  const FormVerdict& fused = outcome.verdict.fused;
  auto is_right = [&](std::size_t rank) {
    return separate.wrong[rank] == 0 && fused.wrong[rank] == 0;
  };
  bool are_right = true;
  for (std::size_t rank = 0; rank < times.size(); ++rank) are_right = are_right && is_right(rank);
  print_wrong(place, "separate", separate.all);
  print_wrong(place, "fused", fused.all);
  if (place.rank != 0) return are_right;

  print_head(options, spec, outcome);
  for (std::size_t rank = 0; rank < times.size(); ++rank)
    print_rank(spec, rank, times[rank], is_right(rank));
  print_bounds(times);
  print_form(spec, "separate", separate.all);
  print_form(spec, "fused", fused.all);
  std::printf("every element of %d %s verified in %.2f s: %s\n", place.ranks,
              place.ranks == 1 ? "rank" : "ranks", outcome.verdict.seconds,
              are_right ? "PASS" : "FAIL");
  return are_right;
}

}  // namespace matmul
