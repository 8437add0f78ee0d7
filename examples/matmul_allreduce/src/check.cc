// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <shmem.h>

#include <algorithm>
#include <cstring>

#include "stopwatch.h"

namespace matmul {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{256} << 10;

struct Share {
  std::uint64_t first = 0, rows = 0;
};

Share share_of(const Place& place, std::uint64_t rows) {
  auto rank = static_cast<std::uint64_t>(place.rank);
  auto ranks = static_cast<std::uint64_t>(place.ranks);
  std::uint64_t each = rows / ranks, more = rows % ranks;
  return {rank * each + std::min(rank, more), each + (rank < more ? 1 : 0)};
}

std::uint64_t count_different(const std::byte* a, const std::byte* b, std::size_t bytes,
                              std::size_t element) {
  if (std::memcmp(a, b, bytes) == 0) return 0;
  std::uint64_t different = 0;
  for (std::size_t at = 0; at < bytes; at += element)
    if (std::memcmp(a + at, b + at, element) != 0) ++different;
  return different;
}

// Elements of this rank's share that `peer` holds differently.
std::uint64_t differences(const JobSpec& spec, const Share& share, const std::byte* result,
                          int peer, std::vector<std::byte>& copy) {
  std::size_t element = element_bytes(spec.type);
  const std::byte* mine = result + share.first * spec.shape.n * element;
  std::size_t bytes = share.rows * spec.shape.n * element;
  std::uint64_t different = 0;
  for (std::size_t done = 0; done < bytes; done += kCopyBytes) {
    std::size_t now = std::min(kCopyBytes, bytes - done);
    shmem_getmem(copy.data(), mine + done, now, peer);
    different += count_different(mine + done, copy.data(), now, element);
  }
  return different;
}

void compare_share(const JobSpec& spec, const Share& share, const Workspace& workspace,
                   Reference& reference, Verdict& verdict) {
  std::uint64_t end = share.first + share.rows;
  for (std::uint64_t row = share.first; row < end; row += Reference::kMostRows) {
    for (std::uint64_t column = 0; column < spec.shape.n; column += Reference::kMostColumns) {
      Tile block{row, column, std::min(Reference::kMostRows, end - row),
                 std::min(Reference::kMostColumns, spec.shape.n - column)};
      const double* expected = reference.compute(block);
      std::size_t offset = (row * spec.shape.n + column) * element_bytes(spec.type);
      compare(spec, block, expected, workspace.result(Form::kSeparate) + offset, spec.shape.n,
              verdict.separate.all);
      compare(spec, block, expected, workspace.result(Form::kFused) + offset, spec.shape.n,
              verdict.fused.all);
    }
  }
}

void compare_copies(const JobSpec& spec, const Place& place, const Share& share,
                    const std::byte* result, FormVerdict& verdict) {
  std::vector<std::byte> copy(kCopyBytes);
  verdict.wrong.assign(static_cast<std::size_t>(place.ranks), verdict.all.wrong);
  for (int step = 1; step < place.ranks; ++step) {
    int peer = (place.rank + step) % place.ranks;
    verdict.wrong[static_cast<std::size_t>(peer)] += differences(spec, share, result, peer, copy);
  }
}

template <typename T>
using Reduction = int (*)(shmem_team_t, T*, const T*, std::size_t);

template <typename T>
void reduce_in_place(Reduction<T> reduction, T* values, std::size_t count) {
  auto* memory = static_cast<T*>(shmem_calloc(2 * count, sizeof(T)));
  if (memory == nullptr || count == 0) shmem_global_exit(1);
  std::copy_n(values, count, memory);
  if (reduction(SHMEM_TEAM_WORLD, memory + count, memory, count) != 0) shmem_global_exit(1);
  std::copy_n(memory + count, count, values);
  shmem_free(memory);
}

void share_verdict(FormVerdict& verdict) {
  reduce_in_place(&shmem_uint64_sum_reduce, verdict.wrong.data(), verdict.wrong.size());
  Comparison& all = verdict.all;
  std::uint64_t counts[2] = {all.elements, all.wrong};
  double squares[2] = {all.error_squares, all.reference_squares};
  reduce_in_place(&shmem_uint64_sum_reduce, counts, 2);
  reduce_in_place(&shmem_double_sum_reduce, squares, 2);
  reduce_in_place(&shmem_double_max_reduce, &all.worst, 1);
  all.elements = counts[0];
  all.wrong = counts[1];
  all.error_squares = squares[0];
  all.reference_squares = squares[1];
}

}  // namespace

Verdict check_results(const JobSpec& spec, const Place& place, const Workspace& workspace) {
  Verdict verdict;
  Stopwatch watch;
  Reference reference(spec);
  if (!reference.is_valid()) return verdict;
  Share share = share_of(place, spec.shape.m);
  compare_share(spec, share, workspace, reference, verdict);
  shmem_barrier_all();  // nobody's result is looked at before it is complete everywhere
  compare_copies(spec, place, share, workspace.result(Form::kSeparate), verdict.separate);
  compare_copies(spec, place, share, workspace.result(Form::kFused), verdict.fused);
  share_verdict(verdict.separate);
  share_verdict(verdict.fused);
  verdict.seconds = watch.seconds();
  verdict.is_complete = true;
  return verdict;
}

}  // namespace matmul
