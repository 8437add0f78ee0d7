// SPDX-License-Identifier: Apache-2.0
// Signals between kernels: a number goes around the ring of PEs, each block's on its own, and grows
// at each; meanwhile PE 0 is told of every hop by an added signal, and a last wait takes the hops'
// words as they come.
#include "example.h"

using namespace example;

namespace {

constexpr unsigned kBlocks = 6;

template <typename T>
struct Words {
  T* number;              // [block]
  std::uint64_t* turn;    // [block] set by the PE before
  std::int32_t* hops;     // on PE 0: one more for each hop
  std::uint64_t* passed;  // [PE] on PE 0: whether all blocks of the PE have passed it on
};

template <typename T>
MEMSPAN_GLOBAL void kernel(Words<T> words, std::uint32_t* done, std::size_t* indices,
                           int* is_seen) {
  if (k::thread() != 0) return;  // a block is one thread's here
  const auto me = static_cast<std::size_t>(k::my_pe());
  const int next = (k::my_pe() + 1) % k::n_pes();
  const unsigned block = k::block();
  if (me != 0) k::signal_wait_until(words.turn + block, k::Compare::kEqual, std::uint64_t{1});
  const T number = words.number[block] + static_cast<T>(me + 1);
  k::put_signal(words.number + block, &number, 1, words.turn + block, 1, k::SignalOp::kSet, next);
  k::signal_op(words.hops, 1, k::SignalOp::kAdd, 0);
  // The last block of this PE says that it is through.
  if (k::atomic_fetch_add(done, 1U, k::my_pe()) + 1 == k::blocks())
    k::p(words.passed + me, std::uint64_t{1}, 0);
  if (me != 0) return;
  k::signal_wait_until(words.turn + block, k::Compare::kEqual, std::uint64_t{1});
  if (block != 0) return;
  const auto pes = static_cast<std::size_t>(k::n_pes());
  for (std::size_t seen = 0; seen < pes;) {
    const std::size_t some = k::wait_until_some(words.passed, pes, indices, is_seen,
                                                k::Compare::kEqual, std::uint64_t{1});
    for (std::size_t i = 0; i < some; ++i) is_seen[indices[i]] = 1;
    seen += some;
  }
  k::signal_wait_until(words.hops, k::Compare::kEqual,
                       static_cast<std::int32_t>(pes * k::blocks()));
}

template <typename T>
long count_errors() {
  const auto pes = static_cast<std::size_t>(shmem_n_pes());
  const Symmetric<T> number(kBlocks);
  const Symmetric<std::uint64_t> turn(kBlocks);
  const Symmetric<std::int32_t> hops(1);
  const Symmetric<std::uint64_t> passed(pes);
  const Symmetric<std::uint32_t> done(1);
  const Local<std::size_t> indices(pes);
  const Local<int> is_seen(pes);
  Stream stream;
  stream.launch(kBlocks, kernel<T>, Words<T>{number.get(), turn.get(), hops.get(), passed.get()},
                done.get(), indices.get(), is_seen.get());
  stream.synchronize();
  shmem_barrier_all();
  // Who is PE `me` got what all before it added; PE 0 what all added.
  const auto me = static_cast<std::size_t>(shmem_my_pe());
  const std::size_t adders = me == 0 ? pes : me;
  long wrong = 0;
  for (unsigned block = 0; block < kBlocks; ++block)
    if (number[block] != static_cast<T>(adders * (adders + 1) / 2)) ++wrong;
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](auto zero) { return count_errors<decltype(zero)>(); });
}
