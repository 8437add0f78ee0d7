// SPDX-License-Identifier: Apache-2.0
// A pipeline of two streams and events: while one stream puts a piece to the next PE, the other one
// computes the next piece into a second buffer.
#include <aclshmem.h>

#include <array>
#include <vector>

#include "example.h"

using namespace example;

namespace {

constexpr std::size_t kPieces = 16;
constexpr std::size_t kElements = 20000;  // of a piece

template <typename T>
void compute(T* piece, std::size_t number) {
  const Part mine(kElements, k::block(), k::blocks());
  for (std::size_t i = mine.first; i < mine.last; ++i)
    piece[i] = element<T>(k::my_pe(), number * kElements + i);
}

template <typename T>
long count_errors() {
  const Symmetric<T> received(kPieces * kElements);
  std::array<std::vector<T>, 2> pieces{std::vector<T>(kElements), std::vector<T>(kElements)};
  std::array<memspan_event_t, 2> computed{};
  std::array<memspan_event_t, 2> sent{};
  for (std::size_t i = 0; i < 2; ++i) {
    Stream::require(memspan_event_create(&computed[i]));
    Stream::require(memspan_event_create(&sent[i]));
  }
  Stream computing;
  Stream sending;
  for (std::size_t number = 0; number < kPieces; ++number) {
    const std::size_t i = number % 2;
    // The buffer is free when what it held before is sent; at first it is.
    Stream::require(memspan_stream_wait_event(computing.get(), sent[i]));
    computing.launch(2, compute<T>, pieces[i].data(), number);
    Stream::require(memspan_event_record(computed[i], computing.get()));
    Stream::require(memspan_stream_wait_event(sending.get(), computed[i]));
    aclshmemx_putmem_on_stream(received.get() + number * kElements, pieces[i].data(),
                               kElements * sizeof(T), (shmem_my_pe() + 1) % shmem_n_pes(),
                               sending.get());
    Stream::require(memspan_event_record(sent[i], sending.get()));
  }
  aclshmemx_barrier_all_on_stream(sending.get());
  sending.synchronize();
  computing.synchronize();
  for (std::size_t i = 0; i < 2; ++i) {
    Stream::require(memspan_event_destroy(computed[i]));
    Stream::require(memspan_event_destroy(sent[i]));
  }
  const int previous = (shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes();
  long wrong = 0;
  for (std::size_t i = 0; i < kPieces * kElements; ++i)
    if (received[i] != element<T>(previous, i)) ++wrong;
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](auto zero) { return count_errors<decltype(zero)>(); });
}
