// SPDX-License-Identifier: Apache-2.0
// The sum over all PEs of A x B, fused: a block that has the product of a tile sends it to the PE
// that sums this tile; that one adds tiles as they arrive and sends the sum to all. No barrier
// stands between product and sum.
#include <vector>

#include "tiles.h"

using namespace example;

namespace {

template <typename T>
struct Buffers {
  T* c;                     // the sum, all tiles
  T* parts;                 // [PE][tile] products that came from there
  std::uint64_t* parts_in;  // [tile] how many of them
  std::uint64_t* sums_in;   // [tile] whether the sum is here
};

template <typename T>
MEMSPAN_GLOBAL void kernel(Buffers<T> to, const T* a, const T* b, T* scratch, Shape shape) {
  const auto pes = static_cast<std::size_t>(k::n_pes());
  const auto me = static_cast<std::size_t>(k::my_pe());
  const std::size_t size = shape.tile_elements();
  T* const mine = scratch + k::block() * size;
  // Those that others wait for come first.
  for (std::size_t i = k::block(); i < shape.tiles(); i += k::blocks()) {
    const std::size_t tile = (i + me + 1) % shape.tiles();
    multiply_tile(mine, a, b, shape, tile, k::thread(), k::threads());
    k::sync_block();
    k::put_signal<k::Scope::kBlock>(to.parts + (me * shape.tiles() + tile) * size, mine, size,
                                    to.parts_in + tile, 1, k::SignalOp::kAdd,
                                    static_cast<int>(tile % pes));
  }
  for (std::size_t tile = k::block(); tile < shape.tiles(); tile += k::blocks()) {
    if (tile % pes != me) continue;
    wait_in_block(to.parts_in + tile, k::Compare::kEqual, static_cast<std::uint64_t>(pes));
    for (std::size_t i = k::thread(); i < size; i += k::threads()) {
      T sum{};
      for (std::size_t pe = 0; pe < pes; ++pe)
        sum += to.parts[(pe * shape.tiles() + tile) * size + i];
      mine[i] = sum;
    }
    k::sync_block();
    for (std::size_t i = 0; i < pes; ++i)
      k::put_signal<k::Scope::kBlock>(to.c + tile * size, mine, size, to.sums_in + tile, 1,
                                      k::SignalOp::kSet, static_cast<int>((me + i) % pes));
  }
  for (std::size_t tile = k::block(); tile < shape.tiles(); tile += k::blocks())
    wait_in_block(to.sums_in + tile, k::Compare::kEqual, std::uint64_t{1});
}

template <typename T>
long count_errors() {
  const Shape shape{64, 32, 48, 8};
  const auto pes = static_cast<std::size_t>(shmem_n_pes());
  constexpr unsigned kBlocks = 4;
  Local<T> a(shape.rows * shape.inner);
  Local<T> b(shape.inner * shape.columns);
  const Local<T> scratch(kBlocks * shape.tile_elements());
  fill(a, b, shmem_my_pe());
  const Symmetric<T> c(shape.rows * shape.columns);
  const Symmetric<T> parts(pes * shape.rows * shape.columns);
  const Symmetric<std::uint64_t> parts_in(shape.tiles());
  const Symmetric<std::uint64_t> sums_in(shape.tiles());
  Stream stream;
  stream.launch(kBlocks, kernel<T>, Buffers<T>{c.get(), parts.get(), parts_in.get(), sums_in.get()},
                a.get(), b.get(), scratch.get(), shape);
  stream.synchronize();
  const std::vector<T> golden = sum_of_products<T>(shape);
  long wrong = 0;
  for (std::size_t i = 0; i < golden.size(); ++i)
    if (c[i] != golden[i]) ++wrong;
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](auto zero) { return count_errors<decltype(zero)>(); });
}
