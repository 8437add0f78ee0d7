// SPDX-License-Identifier: Apache-2.0
// What every back end of <memspan/kernel.h> must do, as kernels that count their own mistakes: the
// same source runs on the host device, on the emulated one and, compiled by nvcc, on CUDA.
#include <aclshmem.h>

#include "example.h"

using namespace example;

namespace {

constexpr unsigned kBlocks = 3;
constexpr std::size_t kMost = 5000;  // elements

// Of this PE: how many mistakes, and the line of one of them.
struct Mistakes {
  std::uint32_t* words;
  MEMSPAN_DEVICE void expect(bool holds, int line) const {
    if (holds) return;
    k::atomic_add(words, 1U, k::my_pe());
    k::p(words + 1, static_cast<std::uint32_t>(line), k::my_pe());
  }
};
#define EXPECT_IN_KERNEL(mistakes, condition) (mistakes).expect((condition), __LINE__)

MEMSPAN_DEVICE int next() {
  return (k::my_pe() + 1) % k::n_pes();
}
MEMSPAN_DEVICE int previous() {
  return (k::my_pe() + k::n_pes() - 1) % k::n_pes();
}

// Odd places and lengths, by the scope's threads; each block has a part of its own of all memory.
template <k::Scope scope, typename T>
MEMSPAN_DEVICE void move_in(const Mistakes& mistakes, T* there, T* here, T* back) {
  const std::size_t counts[] = {1, 7, 64, 1000, kMost - 8};
  const bool is_mine = scope == k::Scope::kBlock || k::thread() == 0 ||
                       (scope == k::Scope::kWarp && k::thread() < 32);
  for (const std::size_t count : counts) {
    for (std::size_t i = k::thread(); i < kMost; i += k::threads()) {
      here[i] = static_cast<T>(element<T>(k::my_pe(), i + count) + T{1});
      back[i] = T{};
    }
    k::sync_block();
    if (is_mine) k::put<scope>(there + 3, here + 5, count, next());
    k::barrier_all();
    for (std::size_t i = k::thread(); i < count; i += k::threads())
      EXPECT_IN_KERNEL(
          mistakes, there[3 + i] == static_cast<T>(element<T>(previous(), 5 + i + count) + T{1}));
    if (is_mine) k::get<scope>(back + 2, there + 3, count, next());
    k::sync_block();
    for (std::size_t i = k::thread(); i < count; i += k::threads())
      EXPECT_IN_KERNEL(mistakes, back[2 + i] == here[5 + i]);
    EXPECT_IN_KERNEL(mistakes, back[2 + count] == T{});
    k::barrier_all();
  }
}

template <typename T>
MEMSPAN_GLOBAL void moves(Mistakes mistakes, T* there, T* here, T* back) {
  const std::size_t mine = k::block() * kMost;
  move_in<k::Scope::kThread>(mistakes, there + mine, here + mine, back + mine);
  move_in<k::Scope::kWarp>(mistakes, there + mine, here + mine, back + mine);
  move_in<k::Scope::kBlock>(mistakes, there + mine, here + mine, back + mine);
}

template <typename T>
MEMSPAN_GLOBAL void rows(Mistakes mistakes, T* there, T* here) {
  for (std::size_t i = k::thread(); i < kMost; i += k::threads())
    here[i] = element<T>(k::my_pe(), i);
  k::sync_block();
  k::put_2d<k::Scope::kBlock>(there, here, k::Rows{20, 30, 40, 50}, next());
  k::iput<k::Scope::kBlock>(there + 4000, here + 99, -2, -1, 100, next());
  k::p(there + 4500, element<T>(k::my_pe(), 77), next());
  k::barrier_all();
  for (std::size_t i = k::thread(); i < 600; i += k::threads())
    EXPECT_IN_KERNEL(mistakes,
                     there[i / 30 * 50 + i % 30] == element<T>(previous(), i / 30 * 40 + i % 30));
  for (std::size_t i = k::thread(); i < 100; i += k::threads())
    EXPECT_IN_KERNEL(mistakes, there[4000 - 2 * i] == element<T>(previous(), 99 - i) || i > 98);
  EXPECT_IN_KERNEL(mistakes, k::g(there + 4500, next()) == element<T>(k::my_pe(), 77));
  k::get_2d<k::Scope::kBlock>(here, there, k::Rows{20, 30, 50, 30}, next());
  for (std::size_t i = k::thread(); i < 600; i += k::threads())
    EXPECT_IN_KERNEL(mistakes, here[i] == element<T>(k::my_pe(), i / 30 * 40 + i % 30));
  k::barrier_all();
}

template <typename T>
MEMSPAN_GLOBAL void signals(Mistakes mistakes, T* there, T* here, std::uint64_t* wide,
                            std::int32_t* narrow) {
  T* const data = there + k::block() * kMost;
  T* const mine = here + k::block() * kMost;
  for (int round = 1; round <= 10; ++round) {
    for (std::size_t i = k::thread(); i < kMost; i += k::threads())
      mine[i] = element<T>(k::my_pe(), i + static_cast<std::size_t>(round));
    k::sync_block();
    if (k::block() % 2 == 0) {
      k::put_signal<k::Scope::kBlock>(data, mine, kMost, wide + k::block(), 1, k::SignalOp::kAdd,
                                      next());
      wait_in_block(wide + k::block(), k::Compare::kGreaterEqual, std::uint64_t(round));
    } else {
      k::put_signal_nbi<k::Scope::kBlock>(data, mine, kMost, narrow + k::block(), round,
                                          k::SignalOp::kSet, next());
      wait_in_block(narrow + k::block(), k::Compare::kEqual, std::int32_t(round));
    }
    for (std::size_t i = k::thread(); i < kMost; i += k::threads())
      EXPECT_IN_KERNEL(mistakes,
                       data[i] == element<T>(previous(), i + static_cast<std::size_t>(round)));
    k::barrier_all();
  }
}

struct Counters {
  std::int32_t narrow;
  float real;
  std::int64_t wide;
  std::int16_t small[4];
  std::uint64_t bits;
  double large;
};

MEMSPAN_GLOBAL void count(Counters* all) {
  for (int pe = 0; pe < k::n_pes(); ++pe) {
    k::atomic_inc(&all->narrow, pe);
    k::atomic_add(&all->wide, std::int64_t{1} << 33, pe);
    k::atomic_or(&all->bits, std::uint64_t{1} << (k::block() + 4 * (k::my_pe() % 8)), pe);
    if (k::thread() != 0) continue;
    k::atomic_add(&all->real, 0.5F, pe);
    k::atomic_add(&all->large, 0.25, pe);
    k::atomic_add(&all->small[k::block() % 4], std::int16_t{-3}, pe);
  }
}
MEMSPAN_GLOBAL void look_at_counts(Mistakes mistakes, Counters* all) {
  k::barrier_all();
  if (k::block() == 0 && k::thread() == 0) {
    // Launched with as many threads as count().
    const int blocks = static_cast<int>(k::blocks()) * k::n_pes();
    const int each = blocks * static_cast<int>(k::threads());
    EXPECT_IN_KERNEL(mistakes, k::atomic_fetch(&all->narrow, next()) == each);
    EXPECT_IN_KERNEL(mistakes, k::g(&all->wide, next()) >> 33 == each);
    EXPECT_IN_KERNEL(mistakes, all->real == 0.5F * static_cast<float>(blocks));
    EXPECT_IN_KERNEL(mistakes, all->large == 0.25 * blocks);
    EXPECT_IN_KERNEL(mistakes, all->small[0] + all->small[1] + all->small[2] == -3 * blocks);
  }
  k::barrier_all();
  if (k::block() == 0 && k::thread() == 0) {
    std::int64_t* const word = &all->wide;
    k::atomic_set(word, 5, next());
    k::fence();
    EXPECT_IN_KERNEL(mistakes, k::atomic_compare_swap(word, 4, 6, next()) == 5);
    EXPECT_IN_KERNEL(mistakes, k::atomic_compare_swap(word, 5, 6, next()) == 5);
    EXPECT_IN_KERNEL(mistakes, k::atomic_fetch_and(word, 3, next()) == 6);
    EXPECT_IN_KERNEL(mistakes, k::atomic_fetch_xor(word, 1, next()) == 2);
    EXPECT_IN_KERNEL(mistakes, k::atomic_swap(word, 9, next()) == 3);
  }
  k::barrier_all();
}

// In one block: words are set by the PE before, and waited for in every way.
MEMSPAN_GLOBAL void sets(Mistakes mistakes, std::int32_t* words, std::size_t* found, int* status) {
  if (k::thread() == 0) {
    EXPECT_IN_KERNEL(mistakes, !k::test(words, k::Compare::kNotEqual, 0));
    EXPECT_IN_KERNEL(mistakes, k::test_any(words, 4, nullptr, k::Compare::kGreater, 0) == k::kNone);
    status[1] = 1;
  }
  k::barrier_all();
  if (k::thread() == 0) {
    k::p(words + 2, 9, next());
    EXPECT_IN_KERNEL(mistakes, k::wait_until_any(words, 4, status, k::Compare::kEqual, 9) == 2);
    EXPECT_IN_KERNEL(mistakes,
                     k::wait_until_some(words, 4, found, nullptr, k::Compare::kEqual, 9) == 1);
    EXPECT_IN_KERNEL(mistakes, found[0] == 2);
    k::p(words, 1, next());
    k::p(words + 3, 3, next());
    const std::int32_t wanted[] = {1, 77, 9, 3};
    k::wait_until_all(words, 4, status, k::Compare::kEqual, wanted);
    EXPECT_IN_KERNEL(mistakes, k::test_all(words, 4, status, k::Compare::kEqual, wanted));
    EXPECT_IN_KERNEL(mistakes,
                     k::test_some(words, 4, found, nullptr, k::Compare::kGreater, 0) == 3);
  }
  k::sync_block();
  k::barrier_all();
}

MEMSPAN_GLOBAL void teams(Mistakes mistakes, int team, std::int64_t* word) {
  EXPECT_IN_KERNEL(mistakes, k::team_my_pe(k::kWorld) == k::my_pe());
  EXPECT_IN_KERNEL(mistakes, k::team_n_pes(team) == (k::n_pes() + 1) / 2);
  EXPECT_IN_KERNEL(mistakes, k::team_my_pe(team) == k::my_pe() / 2);
  EXPECT_IN_KERNEL(mistakes,
                   k::team_translate_pe(team, k::team_my_pe(team), k::kWorld) == k::my_pe());
  EXPECT_IN_KERNEL(mistakes, k::ptr(word, k::my_pe()) == word);
  for (int round = 1; round <= 5; ++round) {
    if (k::thread() == 0) k::atomic_inc(word, 0);
    k::barrier(team);
    EXPECT_IN_KERNEL(mistakes, k::g(word, 0) == static_cast<std::int64_t>(k::blocks()) * round *
                                                    k::team_n_pes(team));
    k::sync(team);
  }
}

template <typename T>
long count_errors() {
  const Symmetric<std::uint32_t> mistakes(2);
  const Symmetric<T> there(kBlocks * kMost);
  const Symmetric<std::uint64_t> wide(kBlocks);
  const Symmetric<std::int32_t> narrow(kBlocks);
  const Symmetric<std::int32_t> words(4);
  const Symmetric<std::int64_t> word(1);
  const Symmetric<Counters> counters(1);
  const Local<T> here(kBlocks * kMost);
  const Local<T> back(kBlocks * kMost);
  const Local<std::size_t> found(4);
  const Local<int> status(4);
  const Mistakes to{mistakes.get()};
  int team = -1;
  aclshmem_team_split_strided(0, 0, 2, (shmem_n_pes() + 1) / 2, &team);
  Stream stream;
  stream.launch(kBlocks, moves<T>, to, there.get(), here.get(), back.get());
  stream.launch(1, rows<T>, to, there.get(), here.get());
  stream.launch(kBlocks, signals<T>, to, there.get(), here.get(), wide.get(), narrow.get());
  stream.launch(kBlocks, count, counters.get());
  stream.launch(kBlocks, look_at_counts, to, counters.get());
  stream.launch(1, sets, to, words.get(), found.get(), status.get());
  if (shmem_my_pe() % 2 == 0) stream.launch(kBlocks, teams, to, team, word.get());
  stream.synchronize();
  shmem_barrier_all();
  if (shmem_my_pe() % 2 == 0) aclshmem_team_destroy(team);
  if (mistakes[0] != 0)
    std::fprintf(stderr, "PE %d: one of the mistakes is in line %u\n", shmem_my_pe(), mistakes[1]);
  return static_cast<long>(mistakes[0]);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](auto zero) { return count_errors<decltype(zero)>(); });
}
