// SPDX-License-Identifier: Apache-2.0
// Global and static variables are symmetric.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "job.h"

int global_with_a_value = 41;
long global_of_zeros[4];
// More than a page of each kind, and far apart.
static double values[100'000] = {1.5};
static std::uint64_t megabytes[1 << 20];
static long the_lock;
static long sync_words[SHMEM_BCAST_SYNC_SIZE];
static std::uint64_t signal_word;

namespace memspan::multi {
namespace {

// Set by a constructor of the program, which runs after the library's.
struct BeforeMain {
  BeforeMain() { std::iota(std::begin(numbers), std::end(numbers), 7); }
  int numbers[5];
};
BeforeMain before_main;

TEST(StaticTest, KeepTheValuesTheyHadBeforeTheStart) {
  EXPECT_EQ(global_with_a_value, 41);
  EXPECT_EQ(values[0], 1.5);
  EXPECT_EQ(before_main.numbers[4], 11);
  EXPECT_EQ(megabytes[12345], 0u);
}

TEST(StaticTest, PutAndGetReachThePeersCopy) {
  shmem_int_p(&before_main.numbers[0], me() + 100, next());
  shmem_double_put(values + 50'000, values, 1, next());
  static double local;
  local = 0;
  shmem_barrier_all();
  EXPECT_EQ(before_main.numbers[0], previous() + 100);
  EXPECT_EQ(values[50'000], 1.5);
  EXPECT_EQ(shmem_int_g(&before_main.numbers[0], next()), me() + 100);
  shmem_double_get(&local, values, 1, next());
  EXPECT_EQ(local, 1.5);
  std::vector<std::uint64_t> big(1 << 20, static_cast<std::uint64_t>(me()) + 1);
  shmem_uint64_put(megabytes, big.data(), big.size(), next());
  shmem_barrier_all();
  EXPECT_TRUE(std::all_of(std::begin(megabytes), std::end(megabytes), [](std::uint64_t word) {
    return word == static_cast<std::uint64_t>(previous()) + 1;
  }));
  shmem_barrier_all();
  before_main.numbers[0] = 7;
  std::fill(std::begin(megabytes), std::end(megabytes), 0);
  values[50'000] = 0;
}

TEST(StaticTest, AtomicsSignalsAndWaits) {
  global_of_zeros[1] = 0;
  signal_word = 0;
  shmem_barrier_all();
  for (int i = 0; i < 1000; ++i) shmem_long_atomic_inc(&global_of_zeros[1], 0);
  shmem_barrier_all();
  EXPECT_EQ(shmem_long_atomic_fetch(&global_of_zeros[1], 0), 1000L * peers());
  // Data in the heap with a signal in the program, and the other way round.
  Symmetric<long> heap(1);
  Symmetric<std::uint64_t> heap_signal(1);
  const long mine = me() + 5;
  shmem_long_put_signal(heap.get(), &mine, 1, &signal_word, 3, SHMEM_SIGNAL_SET, next());
  shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, 3);
  EXPECT_EQ(heap[0], previous() + 5);
  shmem_long_put_signal(&global_of_zeros[2], &mine, 1, heap_signal.get(), 1, SHMEM_SIGNAL_ADD,
                        next());
  shmem_signal_wait_until(heap_signal.get(), SHMEM_CMP_EQ, 1);
  EXPECT_EQ(global_of_zeros[2], previous() + 5);
  shmem_signal_add(&signal_word, 4, next());
  shmem_uint64_wait_until(&signal_word, SHMEM_CMP_EQ, 7);
}

TEST(StaticTest, PointerAndAccessibility) {
  static int word;
  word = me();
  shmem_barrier_all();
  EXPECT_EQ(shmem_addr_accessible(&word, next()), 1);
  if (int* theirs = static_cast<int*>(shmem_ptr(&word, next())); theirs != nullptr)
    EXPECT_EQ(*theirs, next());
  EXPECT_EQ(shmem_ptr(&word, me()), &word);
  int on_the_stack = 0;
  EXPECT_EQ(shmem_addr_accessible(&on_the_stack, next()), 0);
}

TEST(StaticTest, CollectivesAndLocks) {
  static long source[300];
  static long sum[300];
  static long all[300 * 16];
  static long sent[300];  // another one: the root may begin while a peer still looks at `sum`
  const auto width = static_cast<std::size_t>(peers());
  for (long i = 0; i < 300; ++i) source[i] = me() + i;
  shmem_barrier_all();
  ASSERT_EQ(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, sum, source, 300), 0);
  EXPECT_EQ(sum[299], 299L * peers() + peers() * (peers() - 1) / 2);
  ASSERT_EQ(shmem_long_fcollect(SHMEM_TEAM_WORLD, all, source, 300), 0);
  EXPECT_EQ(all[(width - 1) * 300 + 3], peers() - 1 + 3);
  ASSERT_EQ(shmem_long_broadcast(SHMEM_TEAM_WORLD, sum, source, 300, peers() - 1), 0);
  EXPECT_EQ(sum[1], peers());
  shmem_broadcast64(sent, source, 300, 0, 0, 0, peers(), sync_words);
  if (me() != 0) EXPECT_EQ(sent[2], 2);
  for (int i = 0; i < 50; ++i) {
    shmem_set_lock(&the_lock);
    const long before = shmem_long_g(&global_of_zeros[3], 0);
    shmem_long_p(&global_of_zeros[3], before + 1, 0);
    shmem_clear_lock(&the_lock);
  }
  shmem_barrier_all();
  EXPECT_EQ(shmem_long_g(&global_of_zeros[3], 0), 50L * peers());
  shmem_barrier_all();
  global_of_zeros[3] = 0;
}

TEST(StaticTest, KeepTheirValuesWhenAJobEndsAndStartsAgain) {
  static long kept = 3;
  const long from = previous();
  shmem_long_p(&kept, me() + 10, next());
  for (int round = 0; round < 3; ++round) {
    shmem_finalize();
    EXPECT_EQ(kept, from + 10 + 1000 * round);
    kept += 1000;  // nobody else sees this now
    shmem_init();
    EXPECT_EQ(shmem_long_g(&kept, me()), kept);
    shmem_barrier_all();
    EXPECT_EQ(shmem_long_g(&kept, next()), me() + 10 + 1000 * (round + 1));
    shmem_barrier_all();
  }
}

TEST(StaticTest, AChildOfForkHasItsOwn) {
  global_of_zeros[0] = 5;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Its parent's values, but no longer its parent's memory.
    const bool is_copy = global_of_zeros[0] == 5 && values[0] == 1.5 && global_with_a_value == 41;
    global_of_zeros[0] = 6;
    global_with_a_value = 0;
    _exit(is_copy && global_of_zeros[0] == 6 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(global_of_zeros[0], 5);
  EXPECT_EQ(global_with_a_value, 41);
  EXPECT_EQ(std::system("true"), 0);
}

}  // namespace
}  // namespace memspan::multi
