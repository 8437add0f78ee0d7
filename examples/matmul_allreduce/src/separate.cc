// SPDX-License-Identifier: Apache-2.0
#include "separate.h"

#include <shmem.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "convert.h"

namespace matmul {
namespace {

// Elements added at a time: the sum and one source fit in the first-level cache.
constexpr std::uint64_t kBlock = 4096;
// Shares begin on a cache line of 16-bit elements, so that no two ranks write the same line.
constexpr std::uint64_t kShareStep = 32;

}  // namespace

SeparateAllreduce::SeparateAllreduce(const JobSpec& spec, const Place& place, const TilePlan& tiles,
                                     Gemm& gemm, Workspace& workspace)
    : spec_(spec), place_(place), tiles_(tiles), gemm_(gemm), workspace_(workspace) {}

void SeparateAllreduce::multiply() {
  for (std::uint64_t number = 0; number < tiles_.tiles(); ++number) {
    Tile tile = tiles_.tile(number);
    std::size_t first = tile.row * spec_.shape.n + tile.column;
    gemm_.multiply(tile, workspace_.partials() + first * kPartialBytes, spec_.shape.n);
  }
}

int SeparateAllreduce::reduce() {
  std::uint64_t elements = spec_.shape.m * spec_.shape.n;
  void* result = workspace_.result(Form::kSeparate);
  void* partials = workspace_.partials();
  if (spec_.type == ElementType::kFloat)
    return shmem_float_sum_reduce(SHMEM_TEAM_WORLD, static_cast<float*>(result),
                                  static_cast<const float*>(partials), elements);
  if (spec_.type == ElementType::kInt32)
    return shmem_int32_sum_reduce(SHMEM_TEAM_WORLD, static_cast<std::int32_t*>(result),
                                  static_cast<const std::int32_t*>(partials), elements);
  auto ranks = static_cast<std::uint64_t>(place_.ranks);
  std::uint64_t share = (elements / ranks / kShareStep + 1) * kShareStep;
  std::uint64_t first = std::min(elements, share * static_cast<std::uint64_t>(place_.rank));
  reduce_share(first, std::min(share, elements - first));
  shmem_barrier_all();
  return 0;
}

void SeparateAllreduce::reduce_share(std::uint64_t first, std::uint64_t count) {
  std::array<float, kBlock> sum;
  std::byte* result = workspace_.result(Form::kSeparate) + first * element_bytes(spec_.type);
  for (std::uint64_t done = 0; done < count; done += kBlock) {
    std::size_t now = std::min(kBlock, count - done);
    std::fill_n(sum.begin(), now, 0.0f);
    for (int peer = 0; peer < place_.ranks; ++peer) add_from(peer, first + done, now, sum.data());
    finish_partials(spec_.type, sum.data(), result + done * element_bytes(spec_.type), now);
  }
  for (int step = 1; step < place_.ranks && count > 0; ++step)
    shmem_putmem_nbi(result, result, count * element_bytes(spec_.type),
                     (place_.rank + step) % place_.ranks);
}

void SeparateAllreduce::add_from(int peer, std::uint64_t first, std::size_t count,
                                 float* sum) const {
  const auto* partials = reinterpret_cast<const float*>(workspace_.partials()) + first;
  if (const void* reached = shmem_ptr(partials, peer))
    return add_partials(spec_.type, reached, sum, count);
  std::array<float, kBlock> copy;
  shmem_getmem(copy.data(), partials, count * sizeof(float), peer);
  add_partials(spec_.type, copy.data(), sum, count);
}

}  // namespace matmul
