// SPDX-License-Identifier: Apache-2.0
// Which pages of a member's pipeline buffers, and of its copies of far members' buffers, are in
// memory.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "pgas/group/process_group.h"
#include "support/huge_pages.h"
#include "unit/pgas/thread_exchange.h"

namespace memspan {
namespace {

using namespace pgas;

using Values = std::vector<std::int32_t>;

const int kInt32 = static_cast<int>(ElementType::kInt32);
const int kSum = static_cast<int>(Operator::kSum);
constexpr std::size_t kLarge = 600'001;  // five pieces
constexpr std::size_t kBufferKib = 2 * kPipelineBytes / 1024;

std::size_t resident_kib(const ProcessGroup& group) {
  const std::size_t bytes = align_up(ProcessGroup::heap_bytes(group.world().nodes()), page_size());
  std::vector<unsigned char> pages(bytes / page_size());
  if (mincore(group.world().heap_of(group.rank()), bytes, pages.data()) != 0) return 0;
  const auto resident =
      std::count_if(pages.begin(), pages.end(), [](int page) { return page & 1; });
  return static_cast<std::size_t>(resident) * page_size() / 1024;
}

int far_members(const ProcessGroup& group) {
  const auto& nodes = group.world().nodes();
  if (nodes.leader_of(nodes.node_of(group.rank())) != group.rank()) return 0;
  int far = 0;
  for (int member = 0; member < group.size(); ++member) far += group.is_near(member) ? 0 : 1;
  return far;
}

Values values_of(int member, std::size_t count) {
  Values values(count);
  std::iota(values.begin(), values.end(), member * 1'000'003);
  return values;
}
Values sums(int members, std::size_t count, std::size_t first = 0) {
  Values all(count);
  for (std::size_t i = 0; i < count; ++i)
    for (int member = 0; member < members; ++member)
      all[i] += member * 1'000'003 + static_cast<std::int32_t>(first + i);
  return all;
}

void all_reduce(ProcessGroup& group, std::size_t count) {
  const ReductionKernel elements = reduction_kernel(kInt32, kSum).value();
  Values values = values_of(group.rank(), count);
  ASSERT_TRUE(group_all_reduce(group, values.data(), values.data(), count, elements).is_ok());
  ASSERT_EQ(values, sums(group.size(), count));
}
void broadcast(ProcessGroup& group, std::size_t count, int root) {
  Values values = values_of(group.rank(), count);
  ASSERT_TRUE(group_broadcast(group, values.data(), count * 4, root).is_ok());
  ASSERT_EQ(values, values_of(root, count));
}
void all_gather(ProcessGroup& group, std::size_t count) {
  const Values mine = values_of(group.rank(), count);
  std::vector<Values> all(static_cast<std::size_t>(group.size()), Values(count));
  std::vector<void*> to;
  for (Values& one : all) to.push_back(one.data());
  ASSERT_TRUE(group_all_gather(group, to.data(), mine.data(), count * 4).is_ok());
  for (int member = 0; member < group.size(); ++member)
    ASSERT_EQ(all[static_cast<std::size_t>(member)], values_of(member, count));
}
void scatter_and_reduce(ProcessGroup& group, std::size_t count, int root) {
  const ReductionKernel elements = reduction_kernel(kInt32, kSum).value();
  const auto members = static_cast<std::size_t>(group.size());
  const auto first = static_cast<std::size_t>(group.rank()) * count;
  const Values values = values_of(group.rank(), members * count);
  std::vector<const void*> parts;
  for (std::size_t member = 0; member < members; ++member)
    parts.push_back(values.data() + member * count);
  Values part(count);
  ASSERT_TRUE(group_scatter(group, part.data(), parts.data(), count * 4, root).is_ok());
  Values expected = values_of(root, members * count);
  ASSERT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + static_cast<long>(first)));
  ASSERT_TRUE(group_reduce_scatter(group, part.data(), parts.data(), count, elements).is_ok());
  ASSERT_EQ(part, sums(group.size(), count, first));
}

// A small call of one kind after the other, with its results.
void call_small(ProcessGroup& group, int step) {
  const int root = step % group.size();
  const bool has_small_slots = group.size() <= 4;  // with more members every slot has pages
  switch (step % 6) {
    case 0:
      ASSERT_TRUE(group_barrier(group).is_ok());
      break;
    case 1:
      all_reduce(group, 500);
      break;
    case 2:
      broadcast(group, 1000, root);
      break;
    case 3:
      all_gather(group, 4000);
      break;
    case 4:
      if (has_small_slots) all_reduce(group, 3000);
      break;
    default:
      if (has_small_slots) scatter_and_reduce(group, 1000, root);
  }
}

bool any(ProcessGroup& group, bool mine) {
  const ReductionKernel elements = reduction_kernel(kInt32, kSum).value();
  std::int32_t sum = mine ? 1 : 0;
  EXPECT_TRUE(group_all_reduce(group, &sum, &sum, 1, elements).is_ok());
  return sum > 0;
}

class GroupMemoryTest : public testing::TestWithParam<GroupHosts> {
 protected:
  void SetUp() override {
    if (const char* why = why_no_advice()) GTEST_SKIP() << "does not apply: " << why;
  }
};
INSTANTIATE_TEST_SUITE_P(Hosts, GroupMemoryTest,
                         testing::Values(GroupHosts(1, "a"), GroupHosts(2, "a"), GroupHosts(3, "a"),
                                         GroupHosts(5, "a"), GroupHosts{"a", "b"},
                                         GroupHosts{"a", "a", "b"},
                                         GroupHosts{"a", "b", "b", "c", "a"}));

TEST_P(GroupMemoryTest, SmallCallsGiveBackWhatNoLargeCallUsedForAWhile) {
  run_group(GetParam(), [](ProcessGroup& group) {
    const auto copies = static_cast<std::size_t>(1 + far_members(group));
    for (int round = 0; round < 2; ++round) {
      const Clock::time_point begin = Clock::now();
      all_gather(group, kLarge);
      EXPECT_GE(resident_kib(group), copies * kBufferKib);
      ASSERT_TRUE(group_barrier(group).is_ok());
      ASSERT_TRUE(group_barrier(group).is_ok());
      std::size_t kept = resident_kib(group);
      if (Clock::now() - begin < std::chrono::seconds(1)) {
        EXPECT_GE(kept, copies * kBufferKib);
      }
      // In each buffer: four pages that a small call uses, one at each end, some that others used.
      const std::size_t most = copies * 32 * page_size() / 1024;
      const Deadline deadline = Deadline::after(std::chrono::seconds(60));
      const auto still = [&] { return (kept = resident_kib(group)) > most; };
      for (int step = round; any(group, still() && !deadline.has_passed()); ++step)
        call_small(group, step);
      EXPECT_LE(kept, most);
    }
    all_reduce(group, kLarge);
    scatter_and_reduce(group, kLarge / 10, group.size() - 1);
    broadcast(group, kLarge, 0);
  });
}

// Each of its calls fails, and ends at once.
TEST_P(GroupMemoryTest, ASurvivorOfAMemberGivesItsNextBufferBack) {
  if (GetParam().size() < 2) return;
  run_group(GetParam(), [](ProcessGroup& group) {
    all_gather(group, kLarge);
    if (group.rank() == group.size() - 1) return group.leave();
    const std::size_t before = resident_kib(group);
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (resident_kib(group) > before * 3 / 4 && !deadline.has_passed())
      ASSERT_EQ(group_barrier(group).code(), Code::kPeerLost);
    EXPECT_LE(resident_kib(group), before * 3 / 4);
  });
}

}  // namespace
}  // namespace memspan
