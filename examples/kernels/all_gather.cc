// SPDX-License-Identifier: Apache-2.0
// All-gather as a kernel, in two forms. Small: each block sends the whole part to some of the PEs,
// with its signal. Large: each block has a slice of everything, and signals for itself, so that
// slices travel at once.
#include "example.h"

using namespace example;

namespace {

template <typename T>
MEMSPAN_GLOBAL void gather_small(T* all, const T* mine, std::size_t count, std::uint64_t* arrived,
                                 std::uint64_t round) {
  const auto me = static_cast<std::size_t>(k::my_pe());
  for (int pe = static_cast<int>(k::block()); pe < k::n_pes(); pe += static_cast<int>(k::blocks()))
    k::put_signal<k::Scope::kBlock>(all + me * count, mine, count, arrived + me, round,
                                    k::SignalOp::kSet, pe);
  for (int pe = static_cast<int>(k::block()); pe < k::n_pes(); pe += static_cast<int>(k::blocks()))
    wait_in_block(arrived + pe, k::Compare::kGreaterEqual, round);
  k::sync_grid();
}

template <typename T>
MEMSPAN_GLOBAL void gather_large(T* all, const T* mine, std::size_t count, std::uint64_t* arrived) {
  const auto me = static_cast<std::size_t>(k::my_pe());
  const Part slice(count, k::block(), k::blocks());
  std::uint64_t* const mine_arrived = arrived + k::block();  // one for each block
  for (int i = 0; i < k::n_pes(); ++i) {
    const int pe = (k::my_pe() + i) % k::n_pes();
    k::put_signal_nbi<k::Scope::kBlock>(all + me * count + slice.first, mine + slice.first,
                                        slice.size(), mine_arrived, 1, k::SignalOp::kAdd, pe);
  }
  wait_in_block(mine_arrived, k::Compare::kEqual, static_cast<std::uint64_t>(k::n_pes()));
  k::sync_grid();
}

template <typename T>
long count_wrong(const T* all, std::size_t count) {
  long wrong = 0;
  for (int pe = 0; pe < shmem_n_pes(); ++pe)
    for (std::size_t i = 0; i < count; ++i)
      if (all[static_cast<std::size_t>(pe) * count + i] != element<T>(pe, i)) ++wrong;
  return wrong;
}

template <typename T>
long count_errors(std::size_t count, bool is_large) {
  constexpr unsigned kBlocks = 4;
  const auto pes = static_cast<std::size_t>(shmem_n_pes());
  const Symmetric<T> all(pes * count);
  const Symmetric<T> mine(count);
  const Symmetric<std::uint64_t> arrived(pes + kBlocks);
  for (std::size_t i = 0; i < count; ++i) mine[i] = element<T>(shmem_my_pe(), i);
  Stream stream;
  if (is_large)
    stream.launch(kBlocks, gather_large<T>, all.get(), mine.get(), count, arrived.get());
  else
    stream.launch(kBlocks, gather_small<T>, all.get(), mine.get(), count, arrived.get(),
                  std::uint64_t{1});
  stream.synchronize();
  return count_wrong(all.get(), count);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](auto zero) {
    using T = decltype(zero);
    return count_errors<T>(100, false) + count_errors<T>(1 << 20, true);
  });
}
