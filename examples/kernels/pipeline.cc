// SPDX-License-Identifier: Apache-2.0
// A pipeline of two streams and events: while one stream puts a piece to the next PE, the other one
// computes the next piece into a second buffer.
#include <array>

#include "example.h"

using namespace example;

namespace {

constexpr std::size_t kPieces = 16;
constexpr std::size_t kElements = 20000;  // of a piece

template <typename T>
MEMSPAN_GLOBAL void compute(T* piece, std::size_t number) {
  const Part mine(kElements, k::block(), k::blocks());
  for (std::size_t i = mine.first + k::thread(); i < mine.last; i += k::threads())
    piece[i] = element<T>(k::my_pe(), number * kElements + i);
}

template <typename T>
MEMSPAN_GLOBAL void send(T* to, const T* piece) {
  const Part mine(kElements, k::block(), k::blocks());
  k::put<k::Scope::kBlock>(to + mine.first, piece + mine.first, mine.size(),
                           (k::my_pe() + 1) % k::n_pes());
}

MEMSPAN_GLOBAL void meet() {
  k::barrier_all();
}

template <typename T>
long count_errors() {
  const Symmetric<T> received(kPieces * kElements);
  const Local<T> first(kElements);
  const Local<T> second(kElements);
  const std::array<T*, 2> pieces{first.get(), second.get()};
  const std::array<Event, 2> computed;
  const std::array<Event, 2> sent;
  Stream computing;
  Stream sending;
  for (std::size_t number = 0; number < kPieces; ++number) {
    const std::size_t i = number % 2;
    // The buffer is free when what it held before is sent; at first it is.
    computing.wait(sent[i]);
    computing.launch(2, compute<T>, pieces[i], number);
    computing.record(computed[i]);
    sending.wait(computed[i]);
    sending.launch(2, send<T>, received.get() + number * kElements, pieces[i]);
    sending.record(sent[i]);
  }
  sending.launch(1, meet);
  sending.synchronize();
  computing.synchronize();
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
