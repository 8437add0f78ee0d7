// SPDX-License-Identifier: Apache-2.0
// An all-reduce by plain loads and stores: every rank has a matrix of halves in its part of a
// symmetric space, and afterwards every rank has the sum of all. Rank r adds up rows r, r + n, ...
// of all parts and stores the sums into everybody's result.
//
//   part of a rank   | its matrix: 16 x 2048 halves | the sum: 16 x 2048 halves |
#include "../matmul_allreduce/src/half.h"
#include "example.h"

using namespace example;

namespace {

constexpr std::size_t kRows = 16, kColumns = 2048, kElements = kRows * kColumns;

struct Part {
  std::uint16_t matrix[kElements];
  std::uint16_t sum[kElements];
};

// Whole numbers up to 7: any order of adding them gives the same half, as long as it is below 2048.
float element(std::uint32_t rank, std::size_t i) {
  return static_cast<float>(random_number(rank * kElements + i) % 8);
}

void all_reduce(Part* parts, std::uint32_t ranks, std::uint32_t rank) {
  for (std::size_t row = rank; row < kRows; row += ranks) {
    for (std::size_t i = row * kColumns; i < (row + 1) * kColumns; ++i) {
      float sum = 0;
      for (std::uint32_t of = 0; of < ranks; ++of)
        sum += matmul::fp16_to_float(parts[of].matrix[i]);
      const std::uint16_t rounded = matmul::float_to_fp16(sum);
      for (std::uint32_t of = 0; of < ranks; ++of) parts[of].sum[i] = rounded;
    }
  }
}

std::size_t wrong_elements(const Part& part, std::uint32_t ranks) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    float sum = 0;
    for (std::uint32_t of = 0; of < ranks; ++of) sum += element(of, i);
    wrong += matmul::fp16_to_float(part.sum[i]) != sum;
  }
  return wrong;
}

int run_rank(const char* store, std::uint32_t ranks, std::uint32_t rank) {
  smem_shm_config_t config;
  must("smem_shm_config_init", smem_shm_config_init(&config));
  must("smem_shm_init", smem_shm_init(store, ranks, rank, 0, &config));
  void* base = nullptr;
  smem_shm_t const space = must("smem_shm_create", smem_shm_create(0, ranks, rank, sizeof(Part),
                                                                   SMEMS_DATA_OP_MTE, 0, &base));
  Part* const parts = static_cast<Part*>(base);
  for (std::size_t i = 0; i < kElements; ++i)
    parts[rank].matrix[i] = matmul::float_to_fp16(element(rank, i));

  must("smem_shm_control_barrier", smem_shm_control_barrier(space));  // all matrices are there
  const double began = seconds_now();
  all_reduce(parts, ranks, rank);
  must("smem_shm_control_barrier", smem_shm_control_barrier(space));  // all sums are
  const double seconds = seconds_now() - began;

  const std::size_t wrong = wrong_elements(parts[rank], ranks);
  expect(wrong == 0, std::to_string(wrong) + " of the sums");
  std::printf("all_reduce: rank %u of %u, %zu x %zu halves, %.6f s, PASS\n", rank, ranks, kRows,
              kColumns, seconds);
  must("smem_shm_destroy", smem_shm_destroy(space, 0));
  smem_shm_uninit(0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("all_reduce", argc, argv, 2, run_rank);
}
