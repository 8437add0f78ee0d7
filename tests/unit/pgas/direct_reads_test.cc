// SPDX-License-Identifier: Apache-2.0
// Large values that members read where they are. Members are threads, so the "other" memory is this
// process's; the kernel copies it all the same.
#include "pgas/group/direct_reads.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <numeric>

#include "pgas/group/call.h"
#include "support/forbidden_syscalls.h"
#include "unit/pgas/thread_exchange.h"

namespace memspan {
namespace {

using namespace pgas;

constexpr std::size_t kCount = 20'000;
constexpr std::size_t kBytes = kCount * sizeof(std::int32_t);
// Enough to try each way several times, whatever is faster here.
constexpr int kCalls = DirectTrials::kCold + 2 * DirectTrials::kTries * DirectTrials::kTrials + 20;

std::vector<std::int32_t> values_of(int member, int call, std::size_t count = kCount) {
  std::vector<std::int32_t> values(count + 1);
  std::iota(values.begin(), values.end(), member * 1'000'003 + call * 101);
  values[count] = -7;  // a guard
  return values;
}

// Values and places for each member, as the calls want them.
struct Lists {
  explicit Lists(const ProcessGroup& group, int call, std::size_t count = kCount)
      : members(group.size()) {
    for (int member = 0; member < members; ++member) {
      values.push_back(values_of(group.rank() * members + member, call, count));
      results.emplace_back(count + 1, -7);
    }
    for (auto& one : values) from.push_back(one.data());
    for (auto& one : results) to.push_back(one.data());
    bytes.assign(static_cast<std::size_t>(members), count * sizeof(std::int32_t));
  }
  int members;
  std::vector<std::vector<std::int32_t>> values;
  std::vector<std::vector<std::int32_t>> results;
  std::vector<const void*> from;
  std::vector<void*> to;
  std::vector<std::size_t> bytes;
};

using Call = std::function<Status(ProcessGroup&, int call)>;

Status all_gather(ProcessGroup& group, int call) {
  Lists lists(group, call);
  const auto mine = values_of(group.rank(), call);
  MEMSPAN_PASS(group_all_gather(group, lists.to.data(), mine.data(), kBytes));
  for (int member = 0; member < group.size(); ++member)
    EXPECT_EQ(lists.results[member], values_of(member, call)) << call;
  return Status::ok();
}

Status gather(ProcessGroup& group, int call) {
  Lists lists(group, call);
  const int root = call % group.size();
  const bool is_root = group.rank() == root;
  const auto mine = values_of(group.rank(), call);
  MEMSPAN_PASS(group_gather(group, is_root ? lists.to.data() : nullptr, mine.data(), kBytes, root));
  for (int member = 0; is_root && member < group.size(); ++member)
    EXPECT_EQ(lists.results[member], values_of(member, call)) << call;
  return Status::ok();
}

Status broadcast(ProcessGroup& group, int call) {
  const int root = call % group.size();
  auto values = values_of(group.rank(), call);
  MEMSPAN_PASS(group_broadcast(group, values.data(), kBytes, root));
  EXPECT_EQ(values, values_of(root, call)) << call;
  return Status::ok();
}

Status scatter(ProcessGroup& group, int call) {
  Lists lists(group, call);
  const int root = call % group.size();
  auto& mine = lists.results[0];
  MEMSPAN_PASS(group_scatter(group, mine.data(), group.rank() == root ? lists.from.data() : nullptr,
                             kBytes, root));
  EXPECT_EQ(mine, values_of(root * group.size() + group.rank(), call)) << call;
  return Status::ok();
}

Status all_to_all(ProcessGroup& group, int call) {
  Lists lists(group, call);
  MEMSPAN_PASS(group_all_to_all(group, lists.to.data(), lists.bytes.data(), lists.from.data(),
                                lists.bytes.data()));
  for (int member = 0; member < group.size(); ++member)
    EXPECT_EQ(lists.results[member], values_of(member * group.size() + group.rank(), call)) << call;
  return Status::ok();
}

struct Kind {
  const char* name;
  GroupCall call;
  Status (*run)(ProcessGroup&, int);
};
constexpr Kind kKinds[] = {{"AllGather", GroupCall::kAllGather, all_gather},
                           {"Gather", GroupCall::kGather, gather},
                           {"Broadcast", GroupCall::kBroadcast, broadcast},
                           {"Scatter", GroupCall::kScatter, scatter},
                           {"AllToAll", GroupCall::kAllToAll, all_to_all}};

class DirectReadsTest : public testing::TestWithParam<Kind> {
 protected:
  // Calls until the next one is direct. All members see the same.
  static void until_direct(ProcessGroup& group) {
    int call = 0;
    const auto kind = static_cast<std::size_t>(GetParam().call);
    while (!group.direct_reads().plan(kind, kBytes).is_direct) {
      ASSERT_LT(call, kCalls);
      ASSERT_TRUE(GetParam().run(group, call++).is_ok());
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, DirectReadsTest, testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(DirectReadsTest, BothWaysGiveTheValues) {
  run_group(GroupHosts(3, "a"), [](ProcessGroup& group) {
    for (int call = 0; call < kCalls; ++call) {
      const Status done = GetParam().run(group, call);
      ASSERT_TRUE(done.is_ok()) << done.message();
    }
    EXPECT_GT(group.direct_reads().calls(), 0U);
    EXPECT_LT(group.direct_reads().calls(), static_cast<std::uint64_t>(kCalls));
  });
}

// Whatever the reason that it gives.
TEST_P(DirectReadsTest, AKernelThatRefusesThemCostsOneCall) {
  run_group(GroupHosts(3, "a"), [](ProcessGroup& group) {
    const long read = SYS_process_vm_readv;
    const int error = GetParam().call == GroupCall::kAllGather ? EINVAL : EPERM;
    const bool is_for_all =
        GetParam().call == GroupCall::kAllGather || GetParam().call == GroupCall::kAllToAll;
    // Of the other calls only a root reads, or only others than the root.
    if (group.rank() == 1 || !is_for_all) {
      ASSERT_EQ(forbid_syscalls(&read, 1, error), 0);
    }
    for (int call = 0; call < kCalls; ++call) {
      const Status done = GetParam().run(group, call);
      ASSERT_TRUE(done.is_ok()) << done.message();
    }
    EXPECT_EQ(group.direct_reads().calls(), 0U);
    EXPECT_FALSE(group.direct_reads().is_possible());
  });
}

TEST_P(DirectReadsTest, DifferentCallsAreFoundBeforeAnythingIsRead) {
  run_group(GroupHosts(3, "a"), [](ProcessGroup& group) {
    until_direct(group);
    const Status differs = group.rank() == 2 ? group_barrier(group) : GetParam().run(group, 0);
    EXPECT_EQ(differs.code(), Code::kInvalidArgument) << differs.message();
    EXPECT_TRUE(GetParam().run(group, 1).is_ok());
  });
}

TEST_P(DirectReadsTest, AMemberThatLeftEndsTheCallOfOthers) {
  run_group(GroupHosts(3, "a"), [](ProcessGroup& group) {
    until_direct(group);
    if (group.rank() == 2) return group.leave();
    EXPECT_EQ(GetParam().run(group, 0).code(), Code::kPeerLost);
  });
}

// Of a large one the reads fail; otherwise the process would die by SIGSEGV.
TEST(DirectReadsOfTest, MemoryThatIsGoneIsAnErrorWithTheAddressOnAllMembers) {
  run_group(GroupHosts(3, "a"), [](ProcessGroup& group) {
    const auto kind = static_cast<std::size_t>(GroupCall::kAllGather);
    for (int call = 0; !group.direct_reads().plan(kind, kBytes).is_direct; ++call) {
      ASSERT_LT(call, kCalls);
      ASSERT_TRUE(all_gather(group, call).is_ok());
    }
    Lists lists(group, 0);
    auto mine = values_of(group.rank(), 0);
    void* const values = group.rank() == 1
                             ? mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                             : mine.data();
    lists.to[static_cast<std::size_t>(group.rank())] = values;
    const Status failed = group_all_gather(group, lists.to.data(), values, kBytes);
    EXPECT_EQ(failed.code(), Code::kInvalidArgument);
    EXPECT_NE(failed.message().find("member 1: there is no readable memory at 0x"),
              std::string::npos)
        << failed.message();
    if (group.rank() == 1) munmap(values, kBytes);
    EXPECT_TRUE(all_gather(group, 1).is_ok());
  });
}

// Only some members' values are so large that they are read directly.
TEST(DirectReadsOfTest, UnevenSizesMoveBothWaysInOneCall) {
  run_group(GroupHosts(3, "a"), [](ProcessGroup& group) {
    const auto members = static_cast<std::size_t>(group.size());
    const auto rank = static_cast<std::size_t>(group.rank());
    // Member 2 has little for others, 0 and 1 have much; 1 has several buffers full for 2.
    const auto count_of = [](std::size_t from, std::size_t to) -> std::size_t {
      return from == 2 ? 1000 : from == 1 && to == 2 ? 300'000 : kCount;
    };
    for (int call = 0; call < kCalls; ++call) {
      std::vector<std::vector<std::int32_t>> values;
      std::vector<std::vector<std::int32_t>> results;
      std::vector<void*> to;
      std::vector<const void*> from;
      std::vector<std::size_t> has;
      std::vector<std::size_t> wants;
      for (std::size_t other = 0; other < members; ++other) {
        values.push_back(
            values_of(static_cast<int>(rank * members + other), call, count_of(rank, other)));
        results.emplace_back(count_of(other, rank) + 1, -7);
        has.push_back(count_of(rank, other) * 4);
        wants.push_back(count_of(other, rank) * 4);
      }
      for (std::size_t other = 0; other < members; ++other) {
        to.push_back(results[other].data());
        from.push_back(values[other].data());
      }
      const Status done = group_all_to_all(group, to.data(), wants.data(), from.data(), has.data());
      ASSERT_TRUE(done.is_ok()) << done.message();
      for (std::size_t other = 0; other < members; ++other)
        ASSERT_EQ(results[other],
                  values_of(static_cast<int>(other * members + rank), call, count_of(other, rank)));
    }
    EXPECT_GT(group.direct_reads().calls(), 0U);
  });
}

// One call of member `in_place`, whose results replace its values, and of others, which could be
// read directly. Three buffers full for each.
void all_to_all_in_place(ProcessGroup& group, int in_place, int call) {
  constexpr std::size_t kMuch = 150'000;
  Lists lists(group, call, kMuch);
  if (group.rank() == in_place)
    for (int member = 0; member < group.size(); ++member)
      lists.to[static_cast<std::size_t>(member)] =
          lists.values[static_cast<std::size_t>(member)].data();
  const Status done = group_all_to_all(group, lists.to.data(), lists.bytes.data(),
                                       lists.from.data(), lists.bytes.data());
  ASSERT_TRUE(done.is_ok()) << done.message();
  const auto& got = group.rank() == in_place ? lists.values : lists.results;
  for (int member = 0; member < group.size(); ++member)
    ASSERT_EQ(got[static_cast<std::size_t>(member)],
              values_of(member * group.size() + group.rank(), call, kMuch));
}

TEST(DirectReadsOfTest, ResultsInPlaceOfValuesUseTheBuffers) {
  run_group(GroupHosts(3, "a"), [](ProcessGroup& group) {
    for (int call = 0; call < kCalls; ++call) all_to_all_in_place(group, call % 4 - 1, call);
    EXPECT_GT(group.direct_reads().calls(), 0U);
  });
}

TEST(DirectReadsOfTest, ResultsInPlaceOutliveARefusal) {
  run_group(GroupHosts(3, "a"), [](ProcessGroup& group) {
    const long read = SYS_process_vm_readv;
    if (group.rank() == 2) {
      ASSERT_EQ(forbid_syscalls(&read, 1, EPERM), 0);
    }
    for (int call = 0; call < kCalls; ++call) all_to_all_in_place(group, call % 4 - 1, call);
    EXPECT_FALSE(group.direct_reads().is_possible());
  });
}

// Memory that this process can read, but the kernel not for another one.
TEST(DirectReadsOfTest, SecretMemoryUsesTheBuffers) {
  const int file = static_cast<int>(syscall(SYS_memfd_secret, 0));
  if (file < 0) GTEST_SKIP() << "memfd_secret: " << strerror(errno);
  ASSERT_EQ(ftruncate(file, kBytes), 0);
  void* const secret = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (secret == MAP_FAILED) GTEST_SKIP() << "mapping it: " << strerror(errno);
  const auto values = values_of(1, 0);
  std::memcpy(secret, values.data(), kBytes);
  run_group(GroupHosts(2, "a"), [&](ProcessGroup& group) {
    for (int call = 0; call < kCalls; ++call) {
      Lists lists(group, call);
      auto mine = values_of(group.rank(), 0);
      void* const from = group.rank() == 1 ? secret : mine.data();
      lists.to[static_cast<std::size_t>(group.rank())] = from;
      ASSERT_TRUE(group_all_gather(group, lists.to.data(), from, kBytes).is_ok());
      if (group.rank() == 0) {
        ASSERT_EQ(lists.results[1], values);
      }
    }
    EXPECT_FALSE(group.direct_reads().is_possible());
  });
  munmap(secret, kBytes);
  close(file);
}

TEST(DirectTrialsTest, TheFasterWayServesAndIsTriedAgain) {
  DirectTrials trials;
  DirectPlan plan;
  int direct = 0;
  const auto call = [&](double directly) {
    const DirectPlan next = trials.plan_next();
    if (plan.is_direct) ++direct;
    if (plan.is_rated) trials.rate(plan.is_direct ? directly : 1.0);
    plan = next;
  };
  for (std::uint32_t i = 0; i < DirectTrials::kCold + 100; ++i) call(0.95);
  EXPECT_EQ(direct, static_cast<int>(DirectTrials::kTries * DirectTrials::kTrials));
  EXPECT_FALSE(plan.is_direct);  // a little faster is not enough
  for (std::uint32_t i = 0; i < 3 * DirectTrials::kFirstGap; ++i) call(0.5);
  for (std::uint32_t i = 0; i < 4 * DirectTrials::kLastGap; ++i) call(0.5);
  EXPECT_TRUE(plan.is_direct);
  for (std::uint32_t i = 0; i < 3 * DirectTrials::kLastGap; ++i) call(2.0);
  EXPECT_FALSE(plan.is_direct);
}

// A reader that was stopped reads memory that its owner, which gave up, may have changed.
TEST(DirectReadsOfTest, AReaderHearsThatTheOwnerDidNotWait) {
  std::barrier<> has_given_up(2);
  run_group(GroupHosts(2, "a"), [&](ProcessGroup& group) {
    ASSERT_TRUE(group_barrier(group).is_ok());
    if (group.rank() == 1) has_given_up.arrive_and_wait();
    if (group.rank() == 0) group.set_limit(std::chrono::milliseconds(50));
    const Result<bool> done = group.direct_reads().finish("all_gather", Status::ok());
    EXPECT_EQ(done.status().code(), Code::kTimeout);
    if (group.rank() == 0) has_given_up.arrive_and_wait();
    if (group.rank() == 1) {
      EXPECT_NE(done.status().message().find("member 0 did not wait until its memory was read"),
                std::string::npos)
          << done.status().message();
    }
    EXPECT_EQ(group_barrier(group).code(), Code::kTimeout);
  });
}

}  // namespace
}  // namespace memspan
