// SPDX-License-Identifier: Apache-2.0
// Barriers in a kernel: a stencil over a ring of PEs, whose blocks meet with sync_grid() before one
// of them sends the edges, and with barrier_all() before anybody goes on to the next step.
#include <vector>

#include "example.h"

using namespace example;

namespace {

constexpr std::size_t kCells = 240;  // of each PE, and one more at either end
constexpr int kSteps = 6;

template <typename T>
MEMSPAN_HOST_DEVICE T next_cell(const T* cell) {
  return static_cast<T>(cell[-1] + cell[1] - cell[0]);
}

template <typename T>
MEMSPAN_GLOBAL void kernel(T* now, T* next) {
  const int left = (k::my_pe() + k::n_pes() - 1) % k::n_pes();
  const int right = (k::my_pe() + 1) % k::n_pes();
  const Part mine(kCells, k::block(), k::blocks());
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t i = mine.first + 1 + k::thread(); i <= mine.last; i += k::threads())
      next[i] = next_cell(now + i);
    k::sync_grid();
    if (k::block() == 0 && k::thread() == 0) {
      k::p(next + kCells + 1, next[1], left);
      k::p(next, next[kCells], right);
    }
    k::barrier_all();
    T* const last = now;
    now = next;
    next = last;
  }
}

template <typename T>
long count_errors() {
  const Symmetric<T> first(kCells + 2);
  const Symmetric<T> second(kCells + 2);
  const std::size_t all = kCells * static_cast<std::size_t>(shmem_n_pes());
  const std::size_t begin = kCells * static_cast<std::size_t>(shmem_my_pe());
  std::vector<T> golden(all + 2);
  for (std::size_t i = 0; i < all; ++i) golden[i + 1] = element<T>(0, i);
  const auto close = [&] {
    golden[0] = golden[all];
    golden[all + 1] = golden[1];
  };
  close();
  for (std::size_t i = 0; i < kCells + 2; ++i) first[i] = golden[begin + i];
  shmem_barrier_all();
  Stream stream;
  stream.launch(5, kernel<T>, first.get(), second.get());
  stream.synchronize();
  for (int step = 0; step < kSteps; ++step) {
    std::vector<T> next(all + 2);
    for (std::size_t i = 1; i <= all; ++i) next[i] = next_cell(&golden[i]);
    golden.swap(next);
    close();
  }
  long wrong = 0;
  const Symmetric<T>& last = kSteps % 2 == 0 ? first : second;
  for (std::size_t i = 0; i < kCells + 2; ++i)
    if (last[i] != golden[begin + i]) ++wrong;
  shmem_barrier_all();
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](auto zero) { return count_errors<decltype(zero)>(); });
}
