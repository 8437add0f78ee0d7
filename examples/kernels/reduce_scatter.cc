// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter of a matrix by columns: each PE sums one band of columns. Blocks fetch the band's
// rows from every PE as a 2-D copy, add them, and go on to the next PE.
#include "example.h"

using namespace example;

namespace {

constexpr std::size_t kRows = 96;

template <typename T>
MEMSPAN_GLOBAL void kernel(T* band, const T* matrix, T* scratch, std::size_t columns) {
  const Part mine(columns, static_cast<std::size_t>(k::my_pe()),
                  static_cast<std::size_t>(k::n_pes()));
  const Part rows(kRows, k::block(), k::blocks());
  T* const theirs = scratch + rows.first * mine.size();
  for (int i = 0; i < k::n_pes(); ++i) {
    const k::Rows shape{rows.size(), mine.size(), static_cast<std::ptrdiff_t>(columns),
                        static_cast<std::ptrdiff_t>(mine.size())};
    k::get_2d<k::Scope::kBlock>(theirs, matrix + rows.first * columns + mine.first, shape,
                                (k::my_pe() + i) % k::n_pes());
    T* const sum = band + rows.first * mine.size();
    for (std::size_t j = k::thread(); j < rows.size() * mine.size(); j += k::threads())
      sum[j] += theirs[j];
    k::sync_block();
  }
}

template <typename T>
long count_errors() {
  const std::size_t columns = 64;
  const Symmetric<T> matrix(kRows * columns);
  for (std::size_t i = 0; i < kRows * columns; ++i) matrix[i] = element<T>(shmem_my_pe(), i);
  shmem_barrier_all();
  const Part mine(columns, static_cast<std::size_t>(shmem_my_pe()),
                  static_cast<std::size_t>(shmem_n_pes()));
  const Local<T> band(kRows * mine.size());
  const Local<T> scratch(kRows * mine.size());
  Stream stream;
  stream.launch(5, kernel<T>, band.get(), matrix.get(), scratch.get(), columns);
  stream.synchronize();
  long wrong = 0;
  for (std::size_t row = 0; row < kRows; ++row)
    for (std::size_t j = mine.first; j < mine.last; ++j) {
      T sum{};
      for (int pe = 0; pe < shmem_n_pes(); ++pe) sum += element<T>(pe, row * columns + j);
      if (band[row * mine.size() + j - mine.first] != sum) ++wrong;
    }
  shmem_barrier_all();
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](auto zero) { return count_errors<decltype(zero)>(); });
}
