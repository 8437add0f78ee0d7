// SPDX-License-Identifier: Apache-2.0
// What is special about kernels on a device, on an emulated one: threads of a block that work
// together, memory that only the host reaches, the ring when it is full, teams.
#include <aclshmem.h>
#include <memspan/kernel.h>
#include <memspan/launch.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <vector>

#include "job.h"

namespace memspan::multi {
namespace {

namespace k = memspan::kernel;
using k::primitive::run_threads;

// A static variable: symmetric, and not in the heap that a device reaches.
std::int64_t variable[3000];

class DeviceKernel : public testing::Test {
 protected:
  DeviceKernel() { EXPECT_EQ(memspan_stream_create(&stream_), 0); }
  ~DeviceKernel() override { EXPECT_EQ(memspan_stream_destroy(stream_), 0); }
  template <typename Function, typename... Arguments>
  void run(unsigned blocks, Function function, Arguments... arguments) {
    ASSERT_EQ(launch(stream_, blocks, function, arguments...), 0);
    ASSERT_EQ(memspan_stream_synchronize(stream_, UINT32_MAX), 0);
  }
  memspan_stream_t stream_ = nullptr;
};

TEST_F(DeviceKernel, ItsStateIsThatOfTheJob) {
  const memspan_kernel_state& state = k::primitive::state();
  EXPECT_EQ(state.version, std::uint32_t{MEMSPAN_KERNEL_STATE_VERSION});
  EXPECT_EQ(state.my_pe, me());
  EXPECT_EQ(state.n_pes, peers());
  int near = 0;
  for (int pe = 0; pe < peers(); ++pe) near += k::device::is_far(pe) ? 0 : 1;
  EXPECT_EQ(near, shmem_team_n_pes(SHMEM_TEAM_SHARED));
  EXPECT_EQ(state.has_far_pes, near == peers() ? 0u : 1u);
}

// Odd places and lengths, by all threads of the block, in more pieces than the ring has slots.
TEST_F(DeviceKernel, ThreadsOfABlockPutAndGetTogether) {
  constexpr std::size_t kBytes = 80 * MEMSPAN_KERNEL_PAYLOAD_BYTES + 77;
  const Symmetric<unsigned char> data(kBytes + 16);
  std::vector<unsigned char> source(kBytes + 16);
  for (std::size_t i = 0; i < source.size(); ++i)
    source[i] = static_cast<unsigned char>(i * 7 + i / 251 + static_cast<std::size_t>(me()));
  std::vector<unsigned char> back(kBytes + 16);
  run(
      1,
      [](unsigned char* to, const unsigned char* from, unsigned char* again) {
        run_threads(5, [=] {
          k::put<k::Scope::kBlock>(to + 3, from + 6, kBytes, next());
          if (k::thread() == 0) k::quiet();
          k::sync_block();
          k::get<k::Scope::kBlock>(again + 1, to + 3, kBytes, next());
        });
      },
      data.get(), source.data(), back.data());
  EXPECT_TRUE(std::equal(back.begin() + 1, back.begin() + 1 + kBytes, source.begin() + 6));
  shmem_barrier_all();
}

TEST_F(DeviceKernel, RowsLongerThanAPayload) {
  constexpr std::size_t kLength = MEMSPAN_KERNEL_PAYLOAD_BYTES / sizeof(int) + 5;
  const Symmetric<int> data(3 * (kLength + 9));
  std::vector<int> source(3 * kLength);
  std::iota(source.begin(), source.end(), me() * 1000);
  run(
      1,
      [](int* to, const int* from) {
        run_threads(3, [=] {
          const k::Rows shape{3, kLength, kLength, kLength + 9};
          k::put_2d<k::Scope::kBlock>(to, from, shape, next());
          k::barrier_all();
        });
      },
      data.get(), source.data());
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t i = 0; i < kLength; ++i)
      ASSERT_EQ(data[row * (kLength + 9) + i],
                previous() * 1000 + static_cast<int>(row * kLength + i));
  shmem_barrier_all();
}

TEST_F(DeviceKernel, RowsBackwards) {
  const Symmetric<std::int64_t> data(40);
  run(
      1,
      [](std::int64_t* to) {
        std::int64_t source[10];
        std::iota(source, source + 10, me() * 100);
        k::iput(to + 36, source + 9, -4, -1, 10, next());
        k::barrier_all();
        std::int64_t back[10];
        k::iget(back, to + 36, 1, -4, 10, me());
        for (int i = 0; i < 10; ++i) EXPECT_EQ(back[i], previous() * 100 + 9 - i);
        k::sync_all();
      },
      data.get());
}

TEST_F(DeviceKernel, StaticVariablesAreReachedByTheHost) {
  run(1, [] {
    EXPECT_EQ(k::ptr(variable, me()), nullptr);
    const std::vector<std::int64_t> source(2999, me() + 5);
    k::put(variable + 1, source.data(), 2999, next());
    k::atomic_add(variable, std::int64_t{3}, next());
    k::barrier_all();
    EXPECT_EQ(k::g(variable + 2999, next()), me() + 5);
    EXPECT_EQ(k::atomic_fetch(variable, next()), 3);
    k::barrier_all();
  });
  EXPECT_EQ(variable[0], 3);
  EXPECT_EQ(variable[1], previous() + 5);
  shmem_barrier_all();
  variable[0] = 0;
}

// More threads ask at once than the ring has slots.
TEST_F(DeviceKernel, AFullRingHoldsItsCallersBack) {
  constexpr unsigned kBlocks = 20;
  constexpr unsigned kThreads = 8;
  constexpr int kRounds = 20;
  const Symmetric<std::uint64_t> count(1);
  run(
      kBlocks,
      [](std::uint64_t* word) {
        run_threads(kThreads, [=] {
          for (int i = 0; i < kRounds; ++i) {
            k::atomic_add(word, std::uint64_t{1}, next());
            if (i % 5 == 0) k::atomic_fetch_add(word, std::uint64_t{1}, next());
          }
        });
        k::barrier_all();
      },
      count.get());
  EXPECT_EQ(count[0], kBlocks * kThreads * (kRounds + kRounds / 5));
  shmem_barrier_all();
}

TEST_F(DeviceKernel, ASignalOfABlockFollowsTheDataOfItsThreads) {
  constexpr std::size_t kCount = 20000;
  const Symmetric<std::uint32_t> data(kCount);
  const Symmetric<std::uint64_t> signal(1);
  run(
      1,
      [](std::uint32_t* to, std::uint64_t* arrived) {
        std::vector<std::uint32_t> source(kCount);
        for (std::uint32_t round = 1; round <= 10; ++round) {
          std::fill(source.begin(), source.end(), round * 100 + static_cast<std::uint32_t>(me()));
          run_threads(4, [&] {
            k::put_signal<k::Scope::kBlock>(to, source.data(), kCount, arrived, 1,
                                            k::SignalOp::kAdd, next());
            k::signal_wait_until(arrived, k::Compare::kEqual, std::uint64_t{round});
            for (std::size_t i = k::thread(); i < kCount; i += k::threads())
              EXPECT_EQ(to[i], round * 100 + static_cast<std::uint32_t>(previous()));
          });
          k::barrier_all();
        }
      },
      data.get(), signal.get());
}

TEST_F(DeviceKernel, TeamsAreInATableOrAsked) {
  // One that began before, so that later ones with its entry are asked for.
  std::vector<int> teams(300, -1);
  for (int& team : teams) ASSERT_EQ(aclshmem_team_split_strided(0, 0, 1, peers(), &team), 0);
  run(
      1,
      [](const std::vector<int>* all) {
        int in_table = 0;
        for (const int team : *all) {
          in_table += k::device::find_team(team) != nullptr ? 1 : 0;
          EXPECT_EQ(k::team_my_pe(team), me());
          EXPECT_EQ(k::team_n_pes(team), peers());
          EXPECT_EQ(k::team_translate_pe(team, next(), k::kWorld), next());
          EXPECT_EQ(k::team_translate_pe(k::kWorld, peers(), team), -1);
        }
        EXPECT_EQ(in_table, MEMSPAN_KERNEL_TEAMS);
      },
      &teams);
  for (const int team : teams) aclshmem_team_destroy(team);
  EXPECT_EQ(k::device::find_team(teams[0]), nullptr);
  EXPECT_EQ(k::team_my_pe(teams[0]), -1);
  shmem_barrier_all();
}

// A block of the host's heap stands for the heap in memory of the device: atomics on it are the
// device's own, whatever the bus has, and the host is not asked but for PEs on other hosts.
TEST_F(DeviceKernel, TheHeapInMemoryOfTheDeviceIsReached) {
  const Symmetric<std::uint64_t> data(64);
  memspan_kernel_state& state = k::this_units_state;
  const memspan_kernel_state saved = state;
  EXPECT_EQ(state.device_heap_bytes, 0U);
  EXPECT_EQ(state.device_distances[me() - state.first_near], MEMSPAN_KERNEL_FAR);
  state.device_heap_base = reinterpret_cast<std::uintptr_t>(data.get());
  state.device_heap_bytes = 64 * sizeof(std::uint64_t);
  state.heap_bytes = state.device_heap_base - state.heap_base;
  state.has_native_atomics = 0;
  std::copy(std::begin(saved.distances), std::end(saved.distances), state.device_distances);
  const std::uint64_t asked = *saved.requests.next_ticket;
  shmem_barrier_all();
  run(
      1,
      [](std::uint64_t* words) {
        const std::vector<std::uint64_t> source(8, static_cast<std::uint64_t>(me()) + 1);
        k::put(words + 8, source.data(), source.size(), next());
        k::atomic_add(words, std::uint64_t{5}, next());
        k::atomic_fetch_add(words, std::uint64_t{6}, next());
        k::quiet();
        k::atomic_add(words + 1, std::uint64_t{1}, next());
        k::wait_until(words + 1, k::Compare::kEqual, std::uint64_t{1});
        EXPECT_EQ(k::g(words + 15, me()), static_cast<std::uint64_t>(previous()) + 1);
        EXPECT_EQ(k::atomic_fetch(words, me()), 11U);
        EXPECT_EQ(k::ptr(words, me()), words);
        EXPECT_EQ(k::ptr(words + 64, me()), nullptr);
        EXPECT_EQ(k::ptr(words + 63, next()) == nullptr, k::device::is_far(next()));
      },
      data.get());
  if (saved.has_far_pes == 0) EXPECT_EQ(*saved.requests.next_ticket, asked);
  state = saved;
  shmem_barrier_all();
}

}  // namespace
}  // namespace memspan::multi
