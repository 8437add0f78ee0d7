// SPDX-License-Identifier: Apache-2.0
// C = (A of all PEs, one below the other) x B: the product of a PE's rows is taken as soon as they
// have arrived, while others are on their way. Every PE ends with all rows of C.
#include <vector>

#include "example.h"

using namespace example;

namespace {

struct Shape {
  std::size_t rows, inner, columns;  // of the A of one PE, and of B
};

// By thread `index` of `count`.
template <typename T>
MEMSPAN_HOST_DEVICE void multiply(T* c, const T* a, const T* b, const Shape& shape,
                                  const Part& rows, std::size_t index, std::size_t count) {
  for (std::size_t i = rows.first; i < rows.last; ++i)
    for (std::size_t j = index; j < shape.columns; j += count) {
      T sum{};
      for (std::size_t l = 0; l < shape.inner; ++l)
        sum += a[i * shape.inner + l] * b[l * shape.columns + j];
      c[i * shape.columns + j] = sum;
    }
}

template <typename T>
MEMSPAN_GLOBAL void kernel(T* c, T* gathered, const T* a, const T* b, std::uint64_t* arrived,
                           Shape shape) {
  const std::size_t part = shape.rows * shape.inner;
  const int pes = k::n_pes();
  const auto me = static_cast<std::size_t>(k::my_pe());
  for (int i = static_cast<int>(k::block()); i < pes; i += static_cast<int>(k::blocks())) {
    const int pe = (k::my_pe() + i) % pes;
    k::put_signal_nbi<k::Scope::kBlock>(gathered + me * part, a, part, arrived + me, 1,
                                        k::SignalOp::kSet, pe);
  }
  // Its own first, then those that were sent first.
  for (int i = 0; i < pes; ++i) {
    const auto pe = static_cast<std::size_t>((k::my_pe() + pes - i) % pes);
    wait_in_block(arrived + pe, k::Compare::kEqual, std::uint64_t{1});
    multiply(c + pe * shape.rows * shape.columns, gathered + pe * part, b, shape,
             Part(shape.rows, k::block(), k::blocks()), k::thread(), k::threads());
  }
}

template <typename T>
long count_errors() {
  const Shape shape{48, 40, 56};
  const auto pes = static_cast<std::size_t>(shmem_n_pes());
  const Symmetric<T> a(shape.rows * shape.inner);
  const Symmetric<T> gathered(pes * shape.rows * shape.inner);
  const Symmetric<std::uint64_t> arrived(pes);
  const Local<T> b(shape.inner * shape.columns);
  const Local<T> c(pes * shape.rows * shape.columns);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = element<T>(shmem_my_pe() + 5, i);
  for (std::size_t i = 0; i < shape.rows * shape.inner; ++i) a[i] = element<T>(shmem_my_pe(), i);
  Stream stream;
  stream.launch(3, kernel<T>, c.get(), gathered.get(), a.get(), b.get(), arrived.get(), shape);
  stream.synchronize();
  long wrong = 0;
  std::vector<T> golden(shape.rows * shape.columns);
  std::vector<T> theirs(shape.rows * shape.inner);
  for (std::size_t pe = 0; pe < pes; ++pe) {
    for (std::size_t i = 0; i < theirs.size(); ++i) theirs[i] = element<T>(static_cast<int>(pe), i);
    multiply(golden.data(), theirs.data(), b.get(), shape, Part(shape.rows, 0, 1), 0, 1);
    for (std::size_t i = 0; i < golden.size(); ++i)
      if (c[pe * golden.size() + i] != golden[i]) ++wrong;
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](auto zero) { return count_errors<decltype(zero)>(); });
}
