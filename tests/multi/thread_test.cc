// SPDX-License-Identifier: Apache-2.0
// Any thread calls anything: each with contexts of its own, words of its own or shared ones, and
// with teams that only it uses.
#include <thread>
#include <vector>

#include "job.h"

namespace memspan::multi {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 1000;

template <typename Work>
void in_threads(Work work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&work, t] { work(t); });
  for (std::thread& thread : threads) thread.join();
}

std::size_t index_of(int pe, int thread) {
  return static_cast<std::size_t>(pe * kThreads + thread);
}

long value_of(int pe, int thread, int round) {
  return 1'000'000L * (pe + 1) + 10'000L * thread + round;
}

TEST(ThreadTest, IsGivenWhatItAskedFor) {
  int provided = -1;
  shmem_query_thread(&provided);
  EXPECT_EQ(provided, SHMEM_THREAD_MULTIPLE);
}

TEST(ThreadTest, PutsAndGetsThroughContextsOfEveryKind) {
  Symmetric<long> words(index_of(peers(), 0));
  const long kinds[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE,
                        SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE};
  in_threads([&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      shmem_ctx_t context = SHMEM_CTX_INVALID;
      ASSERT_EQ(shmem_ctx_create(kinds[(thread + round) % 4], &context), 0);
      long* mine = &words[index_of(me(), thread)];
      const long value = value_of(me(), thread, round);
      for (int pe = 0; pe < peers(); ++pe) shmem_ctx_long_put_nbi(context, mine, &value, 1, pe);
      shmem_ctx_quiet(context);
      for (int pe = 0; pe < peers(); ++pe) ASSERT_EQ(shmem_ctx_long_g(context, mine, pe), value);
      shmem_ctx_destroy(context);
    }
  });
  shmem_barrier_all();
  for (int pe = 0; pe < peers(); ++pe)
    for (int thread = 0; thread < kThreads; ++thread)
      EXPECT_EQ(words[index_of(pe, thread)], value_of(pe, thread, kRounds - 1));
}

// Each thread has a partner on the next PE: data, fence of the thread's own context, flag.
TEST(ThreadTest, FencesOrderEachContextsPuts) {
  struct alignas(128) Channel {
    long data[8];
    long flag;
    long taken;
  };
  Symmetric<Channel> channels(kThreads);
  in_threads([&](int thread) {
    shmem_ctx_t context = SHMEM_CTX_INVALID;
    ASSERT_EQ(shmem_ctx_create(SHMEM_CTX_PRIVATE, &context), 0);
    Channel& channel = channels[static_cast<std::size_t>(thread)];
    for (long round = 1; round <= kRounds; ++round) {
      long sent[8];
      for (long& word : sent) word = value_of(me(), thread, static_cast<int>(round));
      shmem_ctx_long_put(context, channel.data, sent, 8, next());
      shmem_ctx_fence(context);
      shmem_ctx_long_atomic_set(context, &channel.flag, round, next());
      shmem_long_wait_until(&channel.flag, SHMEM_CMP_GE, round);
      for (long word : channel.data)
        ASSERT_EQ(word, value_of(previous(), thread, static_cast<int>(round)));
      shmem_ctx_long_atomic_set(context, &channel.taken, round, previous());
      shmem_long_wait_until(&channel.taken, SHMEM_CMP_GE, round);
    }
    shmem_ctx_destroy(context);
  });
}

TEST(ThreadTest, AtomicsOfAllThreadsCount) {
  Symmetric<long> counter(1);
  Symmetric<unsigned char> taken(static_cast<std::size_t>(peers()) * kThreads * kRounds);
  in_threads([&](int) {
    for (int round = 0; round < kRounds; ++round) {
      const long number = shmem_long_atomic_fetch_inc(counter.get(), 0);
      shmem_uchar_p(&taken[static_cast<std::size_t>(number)], 1, 0);
    }
  });
  shmem_barrier_all();
  if (me() == 0) {
    EXPECT_EQ(counter[0], static_cast<long>(peers()) * kThreads * kRounds);
    for (std::size_t i = 0; i < static_cast<std::size_t>(counter[0]); ++i) ASSERT_EQ(taken[i], 1);
  }
  shmem_barrier_all();
}

TEST(ThreadTest, TeamsOfDifferentThreadsWorkAtOnce) {
  shmem_team_t teams[kThreads];
  for (shmem_team_t& team : teams)
    ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, peers(), nullptr, 0, &team), 0);
  Symmetric<long> sources(kThreads);
  Symmetric<long> sums(kThreads);
  Symmetric<long> gathered(index_of(peers(), 0));
  in_threads([&](int thread) {
    const auto t = static_cast<std::size_t>(thread);
    long* all = &gathered[t * static_cast<std::size_t>(peers())];
    for (int round = 0; round < kRounds; ++round) {
      sources[t] = value_of(me(), thread, round);
      ASSERT_EQ(shmem_long_sum_reduce(teams[t], &sums[t], &sources[t], 1), 0);
      ASSERT_EQ(shmem_long_fcollect(teams[t], all, &sources[t], 1), 0);
      long sum = 0;
      for (int pe = 0; pe < peers(); ++pe) {
        ASSERT_EQ(all[pe], value_of(pe, thread, round));
        sum += all[pe];
      }
      ASSERT_EQ(sums[t], sum);
      ASSERT_EQ(shmem_team_sync(teams[t]), 0);
    }
  });
  for (shmem_team_t team : teams) shmem_team_destroy(team);
}

// One waits while others of its own process and of the next one work, and one of those wakes it.
TEST(ThreadTest, WaitsWhileOthersWork) {
  Symmetric<long> words(kThreads);
  in_threads([&](int thread) {
    const auto mine = static_cast<std::size_t>(thread);
    const std::size_t other = (mine + 1) % kThreads;
    const int to = thread == kThreads - 1 ? next() : me();
    for (long round = 1; round <= kRounds; ++round) {
      if (thread != 0 || me() != 0) shmem_long_wait_until(&words[mine], SHMEM_CMP_GE, round);
      shmem_long_atomic_inc(&words[other], to);
      shmem_quiet();
      if (thread == 0 && me() == 0) shmem_long_wait_until(&words[mine], SHMEM_CMP_GE, round);
    }
  });
}

}  // namespace
}  // namespace memspan::multi
