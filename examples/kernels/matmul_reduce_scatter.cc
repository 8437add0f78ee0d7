// SPDX-License-Identifier: Apache-2.0
// The sum over all PEs of A x B, of which each PE keeps the tiles with its number: a block that has
// the product of a tile sends it to the tile's PE, which adds tiles in the order in which they
// come.
#include <vector>

#include "tiles.h"

using namespace example;

namespace {

template <typename T>
MEMSPAN_GLOBAL void kernel(T* sums, T* parts, std::uint64_t* arrived, int* added, const T* a,
                           const T* b, T* scratch, Shape shape) {
  const auto pes = static_cast<std::size_t>(k::n_pes());
  const auto me = static_cast<std::size_t>(k::my_pe());
  const std::size_t size = shape.tile_elements();
  T* const mine = scratch + k::block() * size;
  // Those of others come first: their sum waits for them.
  for (std::size_t i = k::block(); i < shape.tiles(); i += k::blocks()) {
    const std::size_t tile = (i + me + 1) % shape.tiles();
    multiply_tile(mine, a, b, shape, tile, k::thread(), k::threads());
    k::sync_block();
    k::put_signal<k::Scope::kBlock>(parts + (me * shape.tiles() + tile) * size, mine, size,
                                    arrived + tile * pes + me, 1, k::SignalOp::kSet,
                                    static_cast<int>(tile % pes));
  }
  for (std::size_t tile = k::block(); tile < shape.tiles(); tile += k::blocks()) {
    if (tile % pes != me) continue;
    // Which PE's part is the next one that all threads of the block add; the last place is for
    // that.
    int* const is_added = added + tile * (pes + 1);
    for (std::size_t i = 0; i < pes; ++i) {
      if (k::thread() == 0) {
        const std::size_t pe = k::wait_until_any(arrived + tile * pes, pes, is_added,
                                                 k::Compare::kEqual, std::uint64_t{1});
        is_added[pe] = 1;
        is_added[pes] = static_cast<int>(pe);
      }
      k::sync_block();
      const T* const part =
          parts + (static_cast<std::size_t>(is_added[pes]) * shape.tiles() + tile) * size;
      for (std::size_t j = k::thread(); j < size; j += k::threads())
        sums[tile / pes * size + j] += part[j];
      k::sync_block();
    }
  }
}

template <typename T>
long count_errors() {
  const Shape shape{64, 32, 48, 8};
  const auto pes = static_cast<std::size_t>(shmem_n_pes());
  const auto me = static_cast<std::size_t>(shmem_my_pe());
  constexpr unsigned kBlocks = 4;
  Local<T> a(shape.rows * shape.inner);
  Local<T> b(shape.inner * shape.columns);
  const Local<T> scratch(kBlocks * shape.tile_elements());
  const Local<int> added(shape.tiles() * (pes + 1));
  fill(a, b, shmem_my_pe());
  const Local<T> sums((shape.tiles() + pes - 1) / pes * shape.tile_elements());
  const Symmetric<T> parts(pes * shape.rows * shape.columns);
  const Symmetric<std::uint64_t> arrived(shape.tiles() * pes);
  Stream stream;
  stream.launch(kBlocks, kernel<T>, sums.get(), parts.get(), arrived.get(), added.get(), a.get(),
                b.get(), scratch.get(), shape);
  stream.synchronize();
  const std::vector<T> golden = sum_of_products<T>(shape);
  long wrong = 0;
  for (std::size_t tile = me; tile < shape.tiles(); tile += pes)
    for (std::size_t i = 0; i < shape.tile_elements(); ++i)
      if (sums[tile / pes * shape.tile_elements() + i] != golden[tile * shape.tile_elements() + i])
        ++wrong;
  shmem_barrier_all();
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](auto zero) { return count_errors<decltype(zero)>(); });
}
