// SPDX-License-Identifier: Apache-2.0
#include "observe/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

#include "top/process_reader.h"

namespace memspan {
namespace {

using testing::HasSubstr;

// What others see of this process; null when it is not seen.
std::optional<ProcessSeen> seen_by_others() {
  ProcessReader reader;
  for (ProcessSeen& seen : reader.look())
    if (seen.counters.process == getpid()) return std::move(seen);
  return std::nullopt;
}

class CountersTest : public testing::Test {
 protected:
  CountersTest() {
    unsetenv("MEMSPAN_TRACE");
    setenv("MEMSPAN_COUNTERS", "1", 1);
  }
  static CallCount now(CallKind kind) {
    return read_counters(*own_counters(), 0).calls[static_cast<std::size_t>(kind)];
  }
};

// Its thread had a slot before fork(), which the child does not have.
TEST_F(CountersTest, AChildThatCountedNothingEndsWell) {
  auto job = ListedMember::list(MemberKind::kJob, "job-1", 0, 1);
  ASSERT_TRUE(job.is_ok()) << job.status().to_string();
  count_call(CallKind::kPut, 1);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) std::exit(0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(CountersTest, IsSeenWhileItIsAMemberAndNoLonger) {
  EXPECT_FALSE(seen_by_others());
  {
    auto job = ListedMember::list(MemberKind::kJob, "job-1", 2, 3);
    ASSERT_TRUE(job.is_ok()) << job.status().to_string();
    job->set_memory(100, 10);
    const auto seen = seen_by_others();
    ASSERT_TRUE(seen);
    EXPECT_TRUE(seen->counters.counts_calls);
    ASSERT_EQ(seen->counters.members.size(), 1u);
    const MemberSeen& member = seen->counters.members[0];
    EXPECT_EQ(member.name, "job-1");
    EXPECT_EQ(member.kind, MemberKind::kJob);
    EXPECT_EQ(member.rank, 2);
    EXPECT_EQ(member.size, 3);
    EXPECT_EQ(member.memory_bytes, 100u);
    EXPECT_EQ(member.memory_used, 10u);
    EXPECT_EQ(seen->node, nullptr);
  }
  EXPECT_FALSE(seen_by_others());
}

TEST_F(CountersTest, CountsWhatManyThreadsDoAndKeepsItWhenTheyEnd) {
  auto pool = ListedMember::list(MemberKind::kPool, "bm/1@here", 0, 1);
  ASSERT_TRUE(pool.is_ok());
  const CallCount before = now(CallKind::kCopy);
  const std::uint32_t uncounted = own_counters()->header.uncounted.load();
  constexpr int kThreads = 8;
  constexpr int kCalls = 1000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([] {
      for (int call = 0; call < kCalls; ++call)
        const RecordedCall recorded(CallKind::kCopy, "test", kNobodyNamed, 3);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(now(CallKind::kCopy).calls - before.calls, std::uint64_t{kThreads * kCalls});
  EXPECT_EQ(now(CallKind::kCopy).bytes - before.bytes, std::uint64_t{kThreads * kCalls * 3});
  EXPECT_EQ(own_counters()->header.uncounted.load(), uncounted);
}

TEST_F(CountersTest, WhatWasCountedStaysFromOneMembershipToTheNext) {
  std::uint64_t counted = 0;
  for (int i = 0; i < 2; ++i) {
    auto job = ListedMember::list(MemberKind::kJob, "job-1", 0, 1);
    ASSERT_TRUE(job.is_ok());
    if (i == 1) {
      EXPECT_EQ(now(CallKind::kPut).calls, counted);
    }
    count_call(CallKind::kPut, 8);
    counted = now(CallKind::kPut).calls;
  }
}

// The slots move when the first membership begins and when the last one ends.
TEST_F(CountersTest, ThreadsThatEndMeanwhileGiveTheirSlotsBack) {
  std::atomic<bool> is_over{false};
  std::thread others([&is_over] {
    while (!is_over.load()) std::thread([] { thread_counters(); }).join();
  });
  for (int i = 0; i < 3000; ++i)
    ASSERT_TRUE(ListedMember::list(MemberKind::kJob, "job-1", 0, 1).is_ok());
  is_over = true;
  others.join();
  const CountersRegion& region = *own_counters();
  for (std::uint32_t i = 0; i < region.header.threads.load(); ++i) {
    const std::int32_t thread = region.threads[i].thread.load();
    EXPECT_TRUE(thread == 0 || thread == gettid()) << "slot " << i;
  }
}

TEST_F(CountersTest, ThreadsBeyondTheSlotsAreToldOf) {
  auto job = ListedMember::list(MemberKind::kJob, "job-1", 0, 1);
  ASSERT_TRUE(job.is_ok());
  std::atomic<std::size_t> counted{0};
  std::atomic<bool> may_end{false};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kMostCountedThreads + 4; ++i)
    threads.emplace_back([&] {
      count_call(CallKind::kGet, 1);
      counted.fetch_add(1);
      may_end.wait(false);
    });
  while (counted.load() < threads.size()) std::this_thread::yield();
  EXPECT_GE(own_counters()->header.uncounted.load(), 4u);
  may_end = true;
  may_end.notify_all();
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CountersTest, AChildOfForkIsAMemberOfNothingAndWritesNothingIntoItsParent) {
  auto job = ListedMember::list(MemberKind::kJob, "job-1", 0, 1);
  ASSERT_TRUE(job.is_ok());
  count_call(CallKind::kPut, 8);
  const CallCount before = now(CallKind::kPut);
  const pid_t child = fork();
  if (child == 0) {
    count_call(CallKind::kPut, 8);
    ProcessReader reader;
    const auto all = reader.look();
    _exit(std::none_of(all.begin(), all.end(),
                       [](const ProcessSeen& seen) { return seen.counters.process == getpid(); })
              ? 0
              : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(now(CallKind::kPut).calls, before.calls);
}

TEST_F(CountersTest, MoreMembershipsThanSlotsAreNotListed) {
  std::vector<ListedMember> members;
  for (std::size_t i = 0; i < kMostListed + 2; ++i) {
    auto one = ListedMember::list(MemberKind::kEndpoint, "e" + std::to_string(i), 0, 1);
    ASSERT_TRUE(one.is_ok());
    members.push_back(std::move(one).value());
  }
  EXPECT_EQ(seen_by_others()->counters.members.size(), kMostListed);
  members.clear();
  EXPECT_FALSE(seen_by_others());
}

TEST_F(CountersTest, NamesAreCutOffAndMadePrintable) {
  auto job = ListedMember::list(MemberKind::kJob, "\033[31m" + std::string(100, 'x'), 0, 1);
  ASSERT_TRUE(job.is_ok());
  EXPECT_EQ(seen_by_others()->counters.members.at(0).name, "?[31m" + std::string(58, 'x'));
}

TEST_F(CountersTest, AWrongSettingIsRefused) {
  setenv("MEMSPAN_COUNTERS", "yes", 1);
  const auto refused = ListedMember::list(MemberKind::kJob, "job-1", 0, 1);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("MEMSPAN_COUNTERS"));
}

TEST_F(CountersTest, NothingIsCountedWhenItIsOff) {
  unsetenv("MEMSPAN_COUNTERS");
  auto job = ListedMember::list(MemberKind::kJob, "job-1", 0, 1);
  ASSERT_TRUE(job.is_ok());
  const CallCount before = now(CallKind::kPut);
  { const RecordedCall recorded(CallKind::kPut, "test", 0, 8); }
  EXPECT_EQ(now(CallKind::kPut).calls, before.calls);
  EXPECT_FALSE(seen_by_others()->counters.counts_calls);
}

}  // namespace
}  // namespace memspan
