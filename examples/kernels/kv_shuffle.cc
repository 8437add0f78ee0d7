// SPDX-License-Identifier: Apache-2.0
// Exchange of blocks of a KV cache between pairs of PEs: a list says which block goes to which
// place of the partner. One block of the kernel moves some of them, and counts at the partner.
#include "example.h"

using namespace example;

namespace {

constexpr std::size_t kElements = 4096;  // of a cache block
constexpr std::size_t kCacheBlocks = 32;

template <typename T>
MEMSPAN_GLOBAL void kernel(T* received, const T* cache, const std::uint32_t* places,
                           std::uint64_t* count, int partner) {
  std::uint64_t moved = 0;
  for (std::size_t i = k::block(); i < kCacheBlocks; i += k::blocks(), ++moved)
    k::put_nbi<k::Scope::kBlock>(received + places[i] * kElements, cache + i * kElements, kElements,
                                 partner);
  // Signals come after the data only where they are told to: that of all threads of the block.
  k::sync_block();
  if (k::thread() != 0) return;
  k::fence();
  k::signal_op(count, moved, k::SignalOp::kAdd, partner);
  k::signal_wait_until(count, k::Compare::kEqual, std::uint64_t{kCacheBlocks});
}

// A partner of its own for every PE; the last of an odd number is its own.
int partner_of(int pe) {
  return (pe ^ 1) < shmem_n_pes() ? pe ^ 1 : pe;
}
std::uint32_t place_of(std::size_t block, int pe) {
  return static_cast<std::uint32_t>((block * 5 + static_cast<std::size_t>(pe)) % kCacheBlocks);
}

template <typename T>
long count_errors() {
  const int me = shmem_my_pe();
  const Symmetric<T> cache(kCacheBlocks * kElements);
  const Symmetric<T> received(kCacheBlocks * kElements);
  const Symmetric<std::uint64_t> count(1);
  const Local<std::uint32_t> places(kCacheBlocks);
  for (std::size_t i = 0; i < kCacheBlocks; ++i) places[i] = place_of(i, me);
  for (std::size_t i = 0; i < kCacheBlocks * kElements; ++i) cache[i] = element<T>(me, i);
  Stream stream;
  stream.launch(4, kernel<T>, received.get(), cache.get(), places.get(), count.get(),
                partner_of(me));
  stream.synchronize();
  long wrong = 0;
  for (std::size_t i = 0; i < kCacheBlocks; ++i)
    for (std::size_t j = 0; j < kElements; ++j)
      if (received[place_of(i, partner_of(me)) * kElements + j] !=
          element<T>(partner_of(me), i * kElements + j))
        ++wrong;
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](auto zero) { return count_errors<decltype(zero)>(); });
}
