// SPDX-License-Identifier: Apache-2.0
// Every function of <memspan/kernel.h>, for all its types and scopes: compiled, by C++ compilers
// and by nvcc. What they do is tested elsewhere.
#include <memspan/kernel.h>
#include <memspan/launch.h>

#include <cstddef>
#include <cstdint>

namespace k = memspan::kernel;

namespace {

struct Three {
  char bytes[3];
};
struct Large {
  double values[3];
};

template <k::Scope scope, typename T>
MEMSPAN_DEVICE void move_in(T* to, const T* from, int pe) {
  const k::Rows shape{2, 3, 4, 5};
  k::put<scope>(to, from, 7, pe);
  k::put_nbi<scope>(to, from, 7, pe);
  k::get<scope>(to, from, 7, pe);
  k::get_nbi<scope>(to, from, 7, pe);
  k::putmem<scope>(to, from, sizeof(T), pe);
  k::putmem_nbi<scope>(to, from, sizeof(T), pe);
  k::getmem<scope>(to, from, sizeof(T), pe);
  k::getmem_nbi<scope>(to, from, sizeof(T), pe);
  k::put_2d<scope>(to, from, shape, pe);
  k::get_2d<scope>(to, from, shape, pe);
  k::iput<scope>(to, from, 2, 3, 4, pe);
  k::iget<scope>(to, from, 2, 3, 4, pe);
}

template <k::Scope scope, typename S>
MEMSPAN_DEVICE void signal_in(double* to, const double* from, S* signal, int pe) {
  k::put_signal<scope>(to, from, 7, signal, 1, k::SignalOp::kSet, pe);
  k::put_signal_nbi<scope>(to, from, 7, signal, 1, k::SignalOp::kAdd, pe);
}

template <typename T>
MEMSPAN_GLOBAL void move(T* to, const T* from, int pe) {
  move_in<k::Scope::kThread>(to, from, pe);
  move_in<k::Scope::kWarp>(to, from, pe);
  move_in<k::Scope::kBlock>(to, from, pe);
  k::p(to, k::g(from, pe), pe);
  if (k::ptr(to, pe) != nullptr) *k::ptr(to, pe) = *from;
}

template <typename S>
MEMSPAN_GLOBAL void signal(double* to, const double* from, S* word, int pe) {
  signal_in<k::Scope::kThread>(to, from, word, pe);
  signal_in<k::Scope::kWarp>(to, from, word, pe);
  signal_in<k::Scope::kBlock>(to, from, word, pe);
  k::signal_op(word, 1, k::SignalOp::kSet, pe);
  k::signal_op(word, k::signal_wait_until(word, k::Compare::kGreater, 3), k::SignalOp::kAdd, pe);
}

template <typename T>
MEMSPAN_GLOBAL void wait(const T* words, const T* values, const int* status, std::size_t* found) {
  const T one{1};
  k::wait_until(words, k::Compare::kEqual, one);
  k::wait_until_all(words, 4, status, k::Compare::kNotEqual, one);
  k::wait_until_all(words, 4, status, k::Compare::kNotEqual, values);
  found[0] = k::wait_until_any(words, 4, status, k::Compare::kLess, one);
  found[1] = k::wait_until_some(words, 4, found + 5, nullptr, k::Compare::kLessEqual, values);
  found[2] = k::test(words, k::Compare::kGreaterEqual, one) ? 1 : 0;
  found[2] += k::test_all(words, 4, status, k::Compare::kEqual, values) ? 1 : 0;
  found[3] = k::test_any(words, 4, status, k::Compare::kEqual, one);
  found[4] = k::test_some(words, 4, found + 5, status, k::Compare::kEqual, values);
}

// Words.
template <typename T>
MEMSPAN_GLOBAL void swap(T* word, int pe) {
  const T before = k::atomic_fetch(word, pe);
  k::atomic_set(word, k::atomic_swap(word, before, pe), pe);
  k::atomic_add(word, k::atomic_compare_swap(word, before, T{2}, pe), pe);
}
// Whole numbers among them.
template <typename T>
MEMSPAN_GLOBAL void combine(T* word, int pe) {
  T all = k::atomic_fetch_add(word, 1, pe);
  all += k::atomic_fetch_inc(word, pe);
  all += k::atomic_fetch_and(word, 1, pe);
  all += k::atomic_fetch_or(word, 1, pe);
  all += k::atomic_fetch_xor(word, 1, pe);
  k::atomic_inc(word, pe);
  k::atomic_and(word, all, pe);
  k::atomic_or(word, all, pe);
  k::atomic_xor(word, all, pe);
}
template <typename T>
MEMSPAN_GLOBAL void add(T* word, int pe) {
  k::atomic_add(word, T{1}, pe);
  k::atomic_inc(word, pe);
}

MEMSPAN_GLOBAL void meet(int* numbers, k::Team team) {
  numbers[0] = k::my_pe() + k::n_pes() + k::team_my_pe(team) + k::team_n_pes(team);
  numbers[1] = k::team_translate_pe(team, 1, k::kWorld);
  numbers[2] = static_cast<int>(k::block() + k::blocks() + k::thread() + k::threads());
  k::fence();
  k::quiet();
  k::sync_block();
  k::sync_grid();
  k::sync(team);
  k::sync_all();
  k::barrier(team);
  k::barrier_all();
}

}  // namespace

// Takes their addresses, so that all are compiled.
template <typename... Kernels>
void use(Kernels... kernels) {
  const void* volatile addresses[] = {reinterpret_cast<const void*>(kernels)...};
  static_cast<void>(addresses);
}

template <typename... T>
void use_for_numbers() {
  use(&move<T>..., &wait<T>..., &add<T>...);
}
template <typename... T>
void use_for_words() {
  use(&swap<T>...);
}
template <typename... T>
void use_for_whole_words() {
  use(&signal<T>..., &combine<T>...);
}

void use_all() {
  use_for_numbers<char, signed char, unsigned char, short, unsigned short, int, unsigned, long,
                  unsigned long, long long, unsigned long long, float, double>();
  use_for_words<int, unsigned, long, unsigned long, long long, unsigned long long, float, double>();
  use_for_whole_words<int, unsigned, long, unsigned long, long long, unsigned long long>();
  use(&move<Three>, &move<Large>, &meet);
}

#if defined __CUDACC__
std::int32_t launch_one(cudaStream_t stream, int* numbers) {
  memspan::Grid grid{4, 128};
  grid.residency = memspan::Residency::kAny;
  const std::int32_t code = memspan::launch(stream, grid, meet, numbers, k::kWorld);
  return code != 0 ? code : memspan::launch(stream, {1, 32}, meet, numbers, k::kWorld);
}
#endif
