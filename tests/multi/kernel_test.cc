// SPDX-License-Identifier: Apache-2.0
// Kernels on the host device: launches in a stream's order, and what they do to other PEs.
#include <aclshmem.h>
#include <memspan/kernel.h>
#include <memspan/launch.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "job.h"

namespace memspan::multi {
namespace {

namespace k = memspan::kernel;

class Kernel : public testing::Test {
 protected:
  Kernel() { EXPECT_EQ(memspan_stream_create(&stream_), 0); }
  ~Kernel() override { EXPECT_EQ(memspan_stream_destroy(stream_), 0); }
  void finish() { ASSERT_EQ(memspan_stream_synchronize(stream_, UINT32_MAX), 0); }
  template <typename Function, typename... Arguments>
  void run(unsigned blocks, Function function, Arguments... arguments) {
    ASSERT_EQ(launch(stream_, blocks, function, arguments...), 0);
    finish();
  }
  memspan_stream_t stream_ = nullptr;
};

TEST_F(Kernel, BlocksKnowWhereTheyAre) {
  std::array<int, 16> seen{};
  run(
      16,
      [](int* place) {
        place[k::block()] = static_cast<int>(k::blocks()) + k::my_pe() + k::n_pes();
      },
      seen.data());
  for (const int one : seen) EXPECT_EQ(one, 16 + me() + peers());
  EXPECT_EQ(k::blocks(), 1u);
  EXPECT_EQ(k::team_my_pe(k::kWorld), me());
  EXPECT_EQ(k::team_n_pes(k::kWorld), peers());
  EXPECT_EQ(k::team_translate_pe(k::kWorld, next(), k::kWorld), next());
  EXPECT_EQ(k::team_n_pes(77), -1);
}

TEST_F(Kernel, EachBlockPutsAPartToTheNextPe) {
  constexpr std::size_t kEach = 1000;
  constexpr unsigned kBlocks = 8;
  const Symmetric<double> data(kEach * kBlocks);
  std::vector<double> source(kEach * kBlocks);
  std::iota(source.begin(), source.end(), me() * 1e6);
  run(
      kBlocks,
      [](double* to, const double* from) {
        const std::size_t first = k::block() * kEach;
        k::put_nbi<k::Scope::kBlock>(to + first, from + first, kEach, next());
        k::barrier_all();
        std::vector<double> back(kEach);
        k::get(back.data(), to + first, kEach, next());
        for (std::size_t i = 0; i < kEach; ++i) EXPECT_EQ(back[i], from[first + i]);
        k::sync_all();
      },
      data.get(), source.data());
  for (std::size_t i = 0; i < source.size(); ++i)
    ASSERT_EQ(data[i], previous() * 1e6 + static_cast<double>(i));
  shmem_barrier_all();
}

TEST_F(Kernel, ScalarsRowsAndStrides) {
  const Symmetric<std::int64_t> word(1);
  const Symmetric<float> single(1);
  const Symmetric<std::int16_t> half(2);
  const Symmetric<std::int32_t> rows(64);
  run(
      1,
      [](std::int64_t* w, float* s, std::int16_t* h, std::int32_t* r) {
        k::p(w, std::int64_t{1} << 40 | me(), next());
        k::p(s, 0.5F + static_cast<float>(me()), next());
        k::p(h + 1, static_cast<std::int16_t>(me() - 7), next());
        std::array<std::int32_t, 64> local;
        std::iota(local.begin(), local.end(), 100 * me());
        // The 3 x 4 in the middle of 8 x 8, to the beginning of rows of 16.
        k::put_2d(r, local.data() + 8 + 2, {3, 4, 8, 16}, next());
        k::iput(r + 50, local.data(), 2, 3, 5, next());
        k::barrier_all();
        EXPECT_EQ(k::g(w, next()), std::int64_t{1} << 40 | me());
        std::array<std::int32_t, 12> back{};
        k::get_2d(back.data(), r, {3, 4, 16, 4}, next());
        EXPECT_EQ(back[5], 100 * me() + 8 + 2 + 8 + 1);
        std::array<std::int32_t, 5> strided{};
        k::iget(strided.data(), r + 50, 1, 2, 5, next());
        EXPECT_EQ(strided[4], 100 * me() + 12);
        k::sync_all();
      },
      word.get(), single.get(), half.get(), rows.get());
  EXPECT_EQ(word[0], std::int64_t{1} << 40 | previous());
  EXPECT_EQ(single[0], 0.5F + static_cast<float>(previous()));
  EXPECT_EQ(half[0], 0);
  EXPECT_EQ(half[1], previous() - 7);
  shmem_barrier_all();
}

TEST_F(Kernel, SignalsFollowTheirData) {
  const Symmetric<std::uint64_t> wide(1);
  const Symmetric<std::int32_t> narrow(1);
  const Symmetric<int> data(512);
  run(
      2,
      [](std::uint64_t* w, std::int32_t* n, int* d) {
        const std::size_t part = std::size_t{k::block()} * 256;
        const std::vector<int> mine(256, me() + 1);
        for (int round = 1; round <= 20; ++round) {
          if (k::block() == 0)
            k::put_signal(d, mine.data(), 256, w, 1, k::SignalOp::kAdd, next());
          else
            k::put_signal_nbi(d + 256, mine.data(), 256, n, round, k::SignalOp::kSet, next());
          if (k::block() == 0) {
            EXPECT_EQ(k::signal_wait_until(w, k::Compare::kGreaterEqual, std::uint64_t(round)),
                      std::uint64_t(round));
          } else {
            EXPECT_EQ(k::signal_wait_until(n, k::Compare::kEqual, round), round);
          }
          for (std::size_t i = part; i < part + 256; ++i) EXPECT_EQ(d[i], previous() + 1);
          k::barrier_all();
        }
      },
      wide.get(), narrow.get(), data.get());
}

// Blocks that wait for signals of others before those have begun: threads are found for them.
TEST_F(Kernel, WaitingBlocksLetTheOthersRun) {
  constexpr unsigned kBlocks = 24;
  const Symmetric<int> flags(kBlocks);
  run(
      kBlocks,
      [](int* flag) {
        const unsigned other = (k::block() + 1) % kBlocks;
        // The last block starts the chain, and each frees the one before it on the next PE.
        if (k::block() != kBlocks - 1) k::wait_until(flag + k::block(), k::Compare::kNotEqual, 0);
        k::p(flag + (k::block() + kBlocks - 1) % kBlocks, static_cast<int>(other) + 1, next());
      },
      flags.get());
  shmem_barrier_all();
}

TEST_F(Kernel, AtomicsCountEveryBlockOfEveryPe) {
  constexpr unsigned kBlocks = 6;
  struct Words {
    std::int32_t narrow;
    float real;
    std::int64_t wide;
    std::int16_t small[4];
    std::uint64_t bits;
  };
  const Symmetric<Words> words(1);
  run(
      kBlocks,
      [](Words* w) {
        for (int pe = 0; pe < peers(); ++pe) {
          k::atomic_inc(&w->narrow, pe);
          k::atomic_add(&w->real, 0.5F, pe);
          k::atomic_fetch_add(&w->wide, std::int64_t{1} << 33, pe);
          k::atomic_add(&w->small[k::block() % 4], std::int16_t{-3}, pe);
          k::atomic_or(&w->bits, std::uint64_t{1} << (k::block() + 8 * (me() % 8)), pe);
        }
      },
      words.get());
  shmem_barrier_all();
  const int all = static_cast<int>(kBlocks) * peers();
  EXPECT_EQ(words[0].narrow, all);
  EXPECT_EQ(words[0].real, 0.5F * static_cast<float>(all));
  EXPECT_EQ(words[0].wide, std::int64_t{all} << 33);
  EXPECT_EQ(words[0].small[0] + words[0].small[1] + words[0].small[2] + words[0].small[3],
            -3 * all);
  EXPECT_EQ(__builtin_popcountll(words[0].bits), all);
  shmem_barrier_all();
  run(
      1,
      [](Words* w) {
        EXPECT_EQ(k::atomic_swap(&w->wide, std::int64_t{5}, me()) >> 33, 6 * peers());
        EXPECT_EQ(k::atomic_compare_swap(&w->wide, std::int64_t{4}, std::int64_t{6}, me()), 5);
        EXPECT_EQ(k::atomic_compare_swap(&w->wide, std::int64_t{5}, std::int64_t{6}, me()), 5);
        k::atomic_set(&w->real, 2.5F, me());
        EXPECT_EQ(k::atomic_fetch(&w->real, me()), 2.5F);
        EXPECT_EQ(k::atomic_fetch_and(&w->wide, std::int64_t{3}, me()), 6);
        EXPECT_EQ(k::atomic_fetch_xor(&w->wide, std::int64_t{1}, me()), 2);
        EXPECT_EQ(k::atomic_fetch(&w->wide, me()), 3);
      },
      words.get());
  shmem_barrier_all();
}

TEST_F(Kernel, TestsAndWaitsOfSets) {
  const Symmetric<std::int32_t> words(4);
  run(
      1,
      [](std::int32_t* w) {
        const std::array<int, 4> status{0, 1, 0, 0};
        EXPECT_FALSE(k::test(w, k::Compare::kNotEqual, 0));
        EXPECT_EQ(k::test_any(w, 4, nullptr, k::Compare::kGreater, 0), k::kNone);
        k::sync_all();
        k::p(w + 2, 9, next());
        EXPECT_EQ(k::wait_until_any(w, 4, status.data(), k::Compare::kEqual, 9), 2u);
        std::array<std::size_t, 4> found{};
        EXPECT_EQ(k::wait_until_some(w, 4, found.data(), nullptr, k::Compare::kGreater, 0), 1u);
        EXPECT_EQ(found[0], 2u);
        k::sync_all();
        k::p(w + 0, 1, next());
        k::p(w + 3, 3, next());
        const std::array<std::int32_t, 4> wanted{1, 77, 9, 3};
        k::wait_until_all(w, 4, status.data(), k::Compare::kEqual, wanted.data());
        EXPECT_TRUE(k::test_all(w, 4, status.data(), k::Compare::kEqual, wanted.data()));
        EXPECT_FALSE(k::test_all(w, 4, nullptr, k::Compare::kEqual, wanted.data()));
        EXPECT_EQ(k::test_some(w, 4, found.data(), nullptr, k::Compare::kLess, 4), 3u);
        const std::array<int, 4> none{1, 1, 1, 1};
        EXPECT_EQ(k::wait_until_any(w, 4, none.data(), k::Compare::kEqual, 9), k::kNone);
      },
      words.get());
  shmem_barrier_all();
}

TEST_F(Kernel, BarriersOfATeamAreForItsMembers) {
  int team = -1;
  ASSERT_EQ(aclshmem_team_split_strided(0, 0, 2, (peers() + 1) / 2, &team), 0);
  const Symmetric<int> count(1);
  if (me() % 2 == 0) {
    run(
        3,
        [](int* c, int its) {
          for (int i = 0; i < 10; ++i) {
            k::atomic_inc(c, 0);
            k::barrier(its);
            EXPECT_EQ(k::g(c, 0), 3 * (i + 1) * k::team_n_pes(its));
            k::sync(its);
          }
        },
        count.get(), team);
    aclshmem_team_destroy(team);
  }
  shmem_barrier_all();
}

TEST_F(Kernel, MemoryOfNearPesIsReachedByPointers) {
  const Symmetric<int> word(1);
  run(
      1,
      [](int* w) {
        EXPECT_EQ(k::ptr(w, me()), w);
        if (int* const theirs = k::ptr(w, next()); theirs != nullptr) *theirs = 5;
        int on_stack = 0;
        EXPECT_EQ(k::ptr(&on_stack, next()), nullptr);
        k::barrier_all();
        EXPECT_EQ(*w, shmem_ptr(w, previous()) == nullptr ? 0 : 5);
      },
      word.get());
  shmem_barrier_all();
}

TEST_F(Kernel, LaunchesKeepTheStreamsOrderAndTheirArguments) {
  std::vector<int> order;
  for (int i = 0; i < 50; ++i) {
    std::vector<int> argument(3, i);
    ASSERT_EQ(launch(
                  stream_, 1 + static_cast<unsigned>(i) % 4,
                  [](std::vector<int>* all, std::vector<int>& mine) {
                    if (k::block() == 0) all->push_back(mine[2]);
                    k::sync_grid();
                  },
                  &order, std::move(argument)),
              0);
  }
  finish();
  ASSERT_EQ(order.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_F(Kernel, BadLaunchesAreRefusedAndGiveTheirArgumentsBack) {
  static int released = 0;
  const auto nothing = [](void*) {};
  const auto release = [](void*) { ++released; };
  EXPECT_NE(memspan_stream_launch(stream_, 0, nothing, nullptr, release), 0);
  EXPECT_NE(memspan_stream_launch(stream_, 65537, nothing, nullptr, release), 0);
  EXPECT_NE(memspan_stream_launch(stream_, 1, nullptr, nullptr, release), 0);
  EXPECT_NE(memspan_stream_launch(nullptr, 1, nothing, nullptr, release), 0);
  EXPECT_EQ(released, 4);
  EXPECT_EQ(memspan_stream_launch(stream_, 65536, nothing, nullptr, release), 0);
  finish();
  EXPECT_EQ(released, 5);
  released = 0;
}

}  // namespace
}  // namespace memspan::multi
