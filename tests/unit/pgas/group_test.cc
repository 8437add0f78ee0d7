// SPDX-License-Identifier: Apache-2.0
// Groups whose members are threads, each with a World of its own.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "pgas/group/point_to_point.h"
#include "pgas/group/process_group.h"
#include "pgas/group/shared_pages.h"
#include "unit/pgas/thread_exchange.h"

namespace memspan {
namespace {

using namespace pgas;

// On both sides of every change of method: with the call, whole, by slices, more pieces.
constexpr std::size_t kCounts[] = {0, 1, 4, 10, 11, 1000, 8192, 8193, 70'001, 300'007};

class GroupTest : public testing::TestWithParam<GroupHosts> {
 protected:
  static void for_all(const std::function<void(ProcessGroup&)>& body) {
    run_group(GetParam(), body);
  }
};
std::string shape_name(const testing::TestParamInfo<GroupHosts>& info) {
  std::string name = "On";
  for (const std::string& host : info.param) name += host;
  return name;
}
INSTANTIATE_TEST_SUITE_P(OneHost, GroupTest,
                         testing::Values(GroupHosts(1, "a"), GroupHosts(2, "a"), GroupHosts(3, "a"),
                                         GroupHosts(5, "a")),
                         shape_name);
// Uneven numbers, and members of a host that are not neighbours.
INSTANTIATE_TEST_SUITE_P(SeveralHosts, GroupTest,
                         testing::Values(GroupHosts{"a", "b"}, GroupHosts{"a", "a", "b"},
                                         GroupHosts{"a", "b", "b", "c", "a"}),
                         shape_name);

std::int32_t value_of(int member, std::size_t i) {
  return member * 1'000'003 + static_cast<std::int32_t>(i * 7) - 50;
}
std::vector<std::int32_t> values_of(int member, std::size_t count) {
  std::vector<std::int32_t> values(count + 1, -7);  // the last is a guard
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(member, i);
  return values;
}
std::int32_t sum_at(int members, std::size_t i) {
  std::int32_t sum = 0;
  for (int member = 0; member < members; ++member) sum += value_of(member, i);
  return sum;
}
const int kInt32 = static_cast<int>(ElementType::kInt32);
const int kFloat32 = static_cast<int>(ElementType::kFloat32);
const int kSum = static_cast<int>(Operator::kSum);

void expect_sums(const std::vector<std::int32_t>& got, int members, std::size_t count,
                 std::size_t first = 0) {
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(got[i], sum_at(members, first + i)) << i;
  ASSERT_EQ(got[count], -7);
}

TEST_P(GroupTest, AllReduceGivesEverybodyTheSumsInPlaceToo) {
  for_all([](ProcessGroup& group) {
    const ReductionKernel elements = reduction_kernel(kInt32, kSum).value();
    for (std::size_t count : kCounts) {
      auto values = values_of(group.rank(), count);
      std::vector<std::int32_t> result(count + 1, -7);
      ASSERT_TRUE(group_all_reduce(group, result.data(), values.data(), count, elements).is_ok());
      expect_sums(result, group.size(), count);
      ASSERT_TRUE(group_all_reduce(group, values.data(), values.data(), count, elements).is_ok());
      expect_sums(values, group.size(), count);
    }
  });
}

TEST_P(GroupTest, ReduceGivesTheRootTheSumsAndLeavesOthersAlone) {
  for_all([](ProcessGroup& group) {
    const ReductionKernel elements = reduction_kernel(kInt32, kSum).value();
    for (int root = 0; root < group.size(); ++root)
      for (std::size_t count : kCounts) {
        const auto values = values_of(group.rank(), count);
        std::vector<std::int32_t> result(count + 1, -7);
        const bool is_root = group.rank() == root;
        ASSERT_TRUE(group_reduce(group, is_root ? result.data() : nullptr, values.data(), count,
                                 elements, root)
                        .is_ok());
        if (is_root)
          expect_sums(result, group.size(), count);
        else
          ASSERT_EQ(values, values_of(group.rank(), count));
      }
  });
}

TEST_P(GroupTest, ReduceScatterGivesEachItsPart) {
  for_all([](ProcessGroup& group) {
    const ReductionKernel elements = reduction_kernel(kInt32, kSum).value();
    const auto members = static_cast<std::size_t>(group.size());
    for (std::size_t count : kCounts) {
      const auto values = values_of(group.rank(), count * members);
      std::vector<const void*> parts;
      for (std::size_t member = 0; member < members; ++member)
        parts.push_back(values.data() + member * count);
      std::vector<std::int32_t> result(count + 1, -7);
      ASSERT_TRUE(
          group_reduce_scatter(group, result.data(), parts.data(), count, elements).is_ok());
      expect_sums(result, group.size(), count, static_cast<std::size_t>(group.rank()) * count);
    }
  });
}

// The root of a small broadcast is ahead of the others, whose buffers are in use still.
TEST_P(GroupTest, CollectivesBehindSmallBroadcastsKeepTheirValues) {
  for_all([](ProcessGroup& group) {
    const ReductionKernel elements = reduction_kernel(kInt32, kSum).value();
    std::minstd_rand dice(11);  // the same on all members
    for (int step = 0; step < 400; ++step) {
      const std::size_t count = kCounts[dice() % std::size(kCounts)] % 40000;
      const int root = static_cast<int>(dice() % static_cast<unsigned>(group.size()));
      auto values = values_of(group.rank(), count);
      if (dice() % 3 != 0) {
        const std::size_t few = dice() % 600;
        auto small = values_of(group.rank(), few);
        ASSERT_TRUE(group_broadcast(group, small.data(), few * 4, root).is_ok());
        ASSERT_EQ(small, values_of(root, few));
      } else {
        ASSERT_TRUE(group_all_reduce(group, values.data(), values.data(), count, elements).is_ok());
        expect_sums(values, group.size(), count);
      }
    }
  });
}

// Whose heap holds a buffer changes from call to call; calls of one kind find what another left.
TEST_P(GroupTest, CallsOfAllKindsInAnyOrderGiveTheirValues) {
  for_all([](ProcessGroup& group) {
    const ReductionKernel elements = reduction_kernel(kInt32, kSum).value();
    const int members = group.size();
    std::minstd_rand dice(5);  // the same on all members
    for (int step = 0; step < 300; ++step) {
      const std::size_t count = 20 + dice() % (step % 10 == 0 ? 90'000 : 5'000);
      const int root = static_cast<int>(dice() % static_cast<unsigned>(members));
      const bool is_root = group.rank() == root;
      // Of this step: member m has value (m, i) for all, or (m * members + n, i) for member n.
      const auto mine = values_of(group.rank() + step, count);
      std::vector<std::vector<std::int32_t>> parts;
      std::vector<std::vector<std::int32_t>> results(static_cast<std::size_t>(members), mine);
      std::vector<const void*> from;
      std::vector<void*> to;
      for (int other = 0; other < members; ++other) {
        parts.push_back(values_of(group.rank() * members + other + step, count));
        to.push_back(results[static_cast<std::size_t>(other)].data());
      }
      for (const auto& part : parts) from.push_back(part.data());
      const std::vector<std::size_t> bytes(static_cast<std::size_t>(members), count * 4);
      auto& first = results[0];
      Status done;
      switch (dice() % 6) {
        case 0:
          done = group_all_reduce(group, first.data(), parts[0].data(), count, elements);
          for (std::size_t i = 0; i < count; ++i) {
            std::int32_t sum = 0;
            for (int m = 0; m < members; ++m) sum += value_of(m * members + step, i);
            ASSERT_EQ(first[i], sum) << "step " << step;
          }
          break;
        case 1:
          done = group_reduce_scatter(group, first.data(), from.data(), count, elements);
          for (std::size_t i = 0; i < count; ++i) {
            std::int32_t sum = 0;
            for (int m = 0; m < members; ++m) sum += value_of(m * members + group.rank() + step, i);
            ASSERT_EQ(first[i], sum) << "step " << step;
          }
          break;
        case 2:
          done = group_all_gather(group, to.data(), mine.data(), count * 4);
          for (int m = 0; m < members; ++m)
            ASSERT_EQ(results[static_cast<std::size_t>(m)], values_of(m + step, count)) << step;
          break;
        case 3:
          done = group_gather(group, is_root ? to.data() : nullptr, mine.data(), count * 4, root);
          for (int m = 0; is_root && m < members; ++m)
            ASSERT_EQ(results[static_cast<std::size_t>(m)], values_of(m + step, count)) << step;
          break;
        case 4:
          done =
              group_scatter(group, first.data(), is_root ? from.data() : nullptr, count * 4, root);
          ASSERT_EQ(first, values_of(root * members + group.rank() + step, count)) << step;
          break;
        default:
          done = group_all_to_all(group, to.data(), bytes.data(), from.data(), bytes.data());
          for (int m = 0; m < members; ++m)
            ASSERT_EQ(results[static_cast<std::size_t>(m)],
                      values_of(m * members + group.rank() + step, count))
                << step;
      }
      ASSERT_TRUE(done.is_ok()) << done.message();
    }
  });
}

TEST_P(GroupTest, BroadcastGivesAllTheRootsValues) {
  for_all([](ProcessGroup& group) {
    for (int root = 0; root < group.size(); ++root)
      for (std::size_t count : kCounts) {
        auto values = values_of(group.rank(), count);
        ASSERT_TRUE(group_broadcast(group, values.data(), count * 4, root).is_ok());
        ASSERT_EQ(values, values_of(root, count));
      }
  });
}

TEST_P(GroupTest, AllGatherAndGatherPutMembersInOrder) {
  for_all([](ProcessGroup& group) {
    for (std::size_t count : kCounts) {
      const auto mine = values_of(group.rank(), count);
      std::vector<std::vector<std::int32_t>> all(static_cast<std::size_t>(group.size()),
                                                 std::vector<std::int32_t>(count + 1, -7));
      std::vector<void*> places;
      for (auto& one : all) places.push_back(one.data());
      ASSERT_TRUE(group_all_gather(group, places.data(), mine.data(), count * 4).is_ok());
      for (int member = 0; member < group.size(); ++member)
        ASSERT_EQ(all[static_cast<std::size_t>(member)], values_of(member, count));
      for (int root = 0; root < group.size(); ++root) {
        for (auto& one : all) std::fill(one.begin(), one.end(), -7);
        const bool is_root = group.rank() == root;
        ASSERT_TRUE(
            group_gather(group, is_root ? places.data() : nullptr, mine.data(), count * 4, root)
                .is_ok());
        for (int member = 0; member < group.size(); ++member)
          ASSERT_EQ(all[static_cast<std::size_t>(member)],
                    is_root ? values_of(member, count) : std::vector<std::int32_t>(count + 1, -7));
      }
    }
  });
}

TEST_P(GroupTest, ScatterGivesEachTheRootsPart) {
  for_all([](ProcessGroup& group) {
    const auto members = static_cast<std::size_t>(group.size());
    for (int root = 0; root < group.size(); ++root)
      for (std::size_t count : kCounts) {
        const auto values = values_of(group.rank(), count * members);
        std::vector<const void*> parts;
        for (std::size_t member = 0; member < members; ++member)
          parts.push_back(values.data() + member * count);
        std::vector<std::int32_t> result(count + 1, -7);
        ASSERT_TRUE(group_scatter(group, result.data(),
                                  group.rank() == root ? parts.data() : nullptr, count * 4, root)
                        .is_ok());
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(result[i], value_of(root, static_cast<std::size_t>(group.rank()) * count + i));
        ASSERT_EQ(result[count], -7);
      }
  });
}

// Member i has i + j + 1 times `unit` elements for member j.
TEST_P(GroupTest, AllToAllMovesPartsOfDifferentSizes) {
  for_all([](ProcessGroup& group) {
    const auto members = static_cast<std::size_t>(group.size());
    const auto rank = static_cast<std::size_t>(group.rank());
    for (std::size_t unit : {0, 1, 100, 30'001}) {
      std::vector<std::vector<std::int32_t>> values;
      std::vector<std::vector<std::int32_t>> results;
      std::vector<std::size_t> bytes;
      std::vector<void*> to;
      std::vector<const void*> from;
      for (std::size_t other = 0; other < members; ++other) {
        const std::size_t count = (rank + other + 1) * unit;
        values.push_back(values_of(static_cast<int>(rank * members + other), count));
        results.emplace_back(count + 1, -7);
        bytes.push_back(count * 4);
      }
      for (std::size_t other = 0; other < members; ++other) {
        to.push_back(results[other].data());
        from.push_back(values[other].data());
      }
      ASSERT_TRUE(
          group_all_to_all(group, to.data(), bytes.data(), from.data(), bytes.data()).is_ok());
      for (std::size_t other = 0; other < members; ++other)
        ASSERT_EQ(results[other],
                  values_of(static_cast<int>(other * members + rank), (rank + other + 1) * unit));
    }
  });
}

TEST_P(GroupTest, MembersThatDifferAllHearItAndGoOn) {
  for_all([](ProcessGroup& group) {
    if (group.size() == 1) return;
    const bool is_last = group.rank() == group.size() - 1;
    std::vector<std::int32_t> values(1000, 5);
    Status status = group_broadcast(group, values.data(), is_last ? 3996 : 4000, 0);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    const std::string said = is_last ? "the size in bytes is 3996 here and 4000 on member 0"
                                     : "the size in bytes is 4000 here and 3996 on member ";
    EXPECT_NE(status.message().find(said), std::string::npos) << status.message();
    const ReductionKernel elements = reduction_kernel(kInt32, kSum).value();
    status = is_last ? group_barrier(group)
                     : group_all_reduce(group, values.data(), values.data(), 1000, elements);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(is_last ? "the call is barrier here and all_reduce on member 0"
                                            : "the call is all_reduce here and barrier on member"),
              std::string::npos)
        << status.message();
    std::vector<std::size_t> bytes(static_cast<std::size_t>(group.size()), 8);
    std::vector<std::size_t> wrong(bytes.size(), is_last ? 12 : 8);
    std::vector<void*> to(bytes.size(), values.data());
    std::vector<const void*> from(bytes.size(), values.data() + 100);
    status = group_all_to_all(group, to.data(), wrong.data(), from.data(), bytes.data());
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(values, std::vector<std::int32_t>(1000, 5));
    EXPECT_TRUE(group_barrier(group).is_ok());
  });
}

// The same bits on all members and for each size of a part, which a float32 sum has only in one
// order.
TEST_P(GroupTest, SumsOfFloatsDependOnNothingButTheValues) {
  for_all([](ProcessGroup& group) {
    const ReductionKernel elements = reduction_kernel(kFloat32, kSum).value();
    constexpr std::size_t kCount = 20'000;
    const auto value = [](int member, std::size_t i) {
      return static_cast<float>(member % 2 == 0 ? 1e8 : 0.37) / static_cast<float>(i % 97 + 1);
    };
    std::vector<float> values(kCount);
    for (std::size_t i = 0; i < kCount; ++i) values[i] = value(group.rank(), i);
    for (std::size_t count : {std::size_t{5}, std::size_t{900}, kCount}) {
      std::vector<float> result(count);
      ASSERT_TRUE(group_all_reduce(group, result.data(), values.data(), count, elements).is_ok());
      for (std::size_t i = 0; i < count; ++i) {
        float sum = value(0, i);
        for (int member = 1; member < group.size(); ++member) sum += value(member, i);
        ASSERT_EQ(std::bit_cast<std::uint32_t>(result[i]), std::bit_cast<std::uint32_t>(sum)) << i;
      }
    }
  });
}

// What one process alone makes of everybody's values (memspan_reduce_local()), with the call
// itself, whole and by slices. No value is a NaN.
TEST_P(GroupTest, NarrowTypesHaveTheBitsOfOneProcessAlone) {
  for_all([](ProcessGroup& group) {
    constexpr std::size_t kCount = 70'001;
    for (const ElementType type :
         {ElementType::kInt8, ElementType::kFloat16, ElementType::kBfloat16,
          ElementType::kFloat8E4m3fn, ElementType::kFloat8E5m2}) {
      const ReductionKernel elements = reduction_kernel(static_cast<int>(type), kSum).value();
      std::vector<std::vector<std::uint8_t>> values;
      std::vector<const void*> sources;
      for (int member = 0; member < group.size(); ++member) {
        auto& mine = values.emplace_back(kCount * elements.bytes);
        for (std::size_t i = 0; i < mine.size(); ++i)
          mine[i] =
              static_cast<std::uint8_t>((i * 31 + static_cast<std::size_t>(member) * 101) % 0x78);
        sources.push_back(mine.data());
      }
      std::vector<std::uint8_t> expected(kCount * elements.bytes);
      elements.combine(expected.data(), sources.data(), group.size(), kCount);
      for (const std::size_t count : {std::size_t{5}, std::size_t{900}, kCount}) {
        const auto& mine = values[static_cast<std::size_t>(group.rank())];
        std::vector<std::uint8_t> result(count * elements.bytes);
        ASSERT_TRUE(group_all_reduce(group, result.data(), mine.data(), count, elements).is_ok());
        ASSERT_TRUE(std::equal(result.begin(), result.end(), expected.begin()))
            << static_cast<int>(type) << " " << count;
      }
    }
  });
}

TEST_P(GroupTest, ArrivalsAreKnownToAll) {
  for_all([](ProcessGroup& group) {
    const auto short_while = std::chrono::milliseconds(1);
    const auto long_while = std::chrono::seconds(30);
    for (int round = 0; round < 20; ++round) {
      ASSERT_TRUE(group.arrive().is_ok());
      ASSERT_TRUE(group.wait_for_arrivals(long_while).is_ok());
      ASSERT_TRUE(group_barrier(group).is_ok());
    }
    const bool is_first = group.rank() == 0;
    if (is_first) {
      ASSERT_TRUE(group.arrive().is_ok());
    }
    if (is_first && group.size() > 1) {
      EXPECT_EQ(group.wait_for_arrivals(short_while).code(), Code::kTimeout);
    }
    ASSERT_TRUE(group_barrier(group).is_ok());
    if (!is_first) {
      ASSERT_TRUE(group.arrive().is_ok());
    }
    EXPECT_TRUE(group.wait_for_arrivals(long_while).is_ok());
    ASSERT_TRUE(group_barrier(group).is_ok());
  });
}

int after(const ProcessGroup& group) {
  return (group.rank() + 1) % group.size();
}
int ahead_of(const ProcessGroup& group) {
  return (group.rank() + group.size() - 1) % group.size();
}
Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}

TEST_P(GroupTest, MessagesGoByTagAndOrder) {
  for_all([](ProcessGroup& group) {
    PointToPoint messages(group);
    const int next = after(group);
    const int before = ahead_of(group);
    const auto size_of = [](int k) { return static_cast<std::size_t>(k * k) * 5'000; };
    std::vector<std::vector<std::int32_t>> sent;
    std::vector<std::shared_ptr<Message>> sends;
    for (int k = 0; k < 8; ++k) sent.push_back(values_of(group.rank() * 8 + k, size_of(k)));
    for (int k = 0; k < 8; ++k)
      sends.push_back(
          messages
              .post({Message::Kind::kSend, next, k % 3,
                     reinterpret_cast<std::byte*>(sent[static_cast<std::size_t>(k)].data()),
                     size_of(k) * 4})
              .value());
    // The other way round by tags, in order within each.
    for (int tag = 2; tag >= 0; --tag)
      for (int k = tag; k < 8; k += 3) {
        std::vector<std::int32_t> got(size_of(k) + 1, -7);
        const auto receive =
            messages
                .post({Message::Kind::kReceive, k % 2 == 0 ? before : kAnybody, tag,
                       reinterpret_cast<std::byte*>(got.data()), size_of(k) * 4})
                .value();
        const Status status = messages.wait(receive, soon());
        ASSERT_TRUE(status.is_ok()) << status.to_string();
        ASSERT_EQ(messages.sender_of(receive), before);
        ASSERT_EQ(got, values_of(before * 8 + k, size_of(k)));
      }
    for (const auto& send : sends) ASSERT_TRUE(messages.wait(send, soon()).is_ok());
    ASSERT_TRUE(group_barrier(group).is_ok());
  });
}

TEST_P(GroupTest, MessagesOfAnotherSizeFailAndAreGone) {
  for_all([](ProcessGroup& group) {
    PointToPoint messages(group);
    const int next = after(group);
    const int before = ahead_of(group);
    std::int64_t first = group.rank();
    std::int64_t second = 100 + group.rank();
    const auto bytes = [](std::int64_t& value) { return reinterpret_cast<std::byte*>(&value); };
    const auto one = messages.post({Message::Kind::kSend, next, 4, bytes(first), 8}).value();
    const auto two = messages.post({Message::Kind::kSend, next, 4, bytes(second), 8}).value();
    std::int64_t got = -7;
    const auto small = messages.post({Message::Kind::kReceive, before, 4, bytes(got), 4}).value();
    const Status status = messages.wait(small, soon());
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("sent 8 bytes with tag 4, and 4 were asked for"),
              std::string::npos);
    EXPECT_EQ(got, -7);
    const auto right = messages.post({Message::Kind::kReceive, before, 4, bytes(got), 8}).value();
    ASSERT_TRUE(messages.wait(right, soon()).is_ok());
    EXPECT_EQ(got, 100 + before);
    ASSERT_TRUE(messages.wait(one, soon()).is_ok());
    ASSERT_TRUE(messages.wait(two, soon()).is_ok());
    // One that nobody sends to: pending after the time-out, and taken back.
    const auto never = messages.post({Message::Kind::kReceive, before, 9, bytes(got), 8}).value();
    EXPECT_EQ(messages.wait(never, Deadline::after(std::chrono::milliseconds(5))).code(),
              Code::kTimeout);
    messages.forget(never);
    EXPECT_EQ(messages.post({Message::Kind::kSend, group.size(), 0, nullptr, 0}).code(),
              Code::kInvalidArgument);
    ASSERT_TRUE(group_barrier(group).is_ok());
  });
}

TEST_P(GroupTest, MapsMembersMemoryAndSwapsWords) {
  for_all([](ProcessGroup& group) {
    SharedPages own;
    MappedPages mapped;
    std::byte* const mine = own.create(10'000).value();
    std::vector<void*> all(static_cast<std::size_t>(group.size()));
    const auto map = [&](void* address) {
      return mapped.map(group, own.find(address), address, all.data());
    };
    if (!group.world().nodes().is_one()) {
      const Status status = map(mine + 64);
      EXPECT_EQ(status.code(), Code::kNotSupported);
      EXPECT_NE(status.message().find("is on host "), std::string::npos);
      const Status ended = group_barrier(group);
      ASSERT_TRUE(ended.is_ok()) << group.rank() << ": " << ended.message();
      return;
    }
    ASSERT_TRUE(map(mine + 64).is_ok());
    ASSERT_EQ(all[static_cast<std::size_t>(group.rank())], mine + 64);
    const int next = after(group);
    const int before = ahead_of(group);
    const auto word_of = [&](int member) -> std::atomic<std::uint32_t>& {
      return *reinterpret_cast<std::atomic<std::uint32_t>*>(all[static_cast<std::size_t>(member)]);
    };
    for (int round = 0; round < 200; ++round) {
      // Free, taken, full; and taken again by the reader.
      ASSERT_TRUE(swap_word(group, word_of(next), 0, 3, next, Deadline::never()).is_ok());
      static_cast<std::int32_t*>(all[static_cast<std::size_t>(next)])[1] = round;
      ASSERT_TRUE(swap_word(group, word_of(next), 3, 1, next, Deadline::never()).is_ok());
      ASSERT_TRUE(swap_word(group, word_of(group.rank()), 1, 2, before, Deadline::never()).is_ok());
      ASSERT_EQ(reinterpret_cast<std::int32_t*>(mine + 64)[1], round);
      ASSERT_TRUE(swap_word(group, word_of(group.rank()), 2, 0, before, Deadline::never()).is_ok());
    }
    EXPECT_EQ(swap_word(group, word_of(group.rank()), 5, 6, before,
                        Deadline::after(std::chrono::milliseconds(2)))
                  .code(),
              Code::kTimeout);
    ASSERT_TRUE(mapped.unmap(group, all.data()).is_ok());
    if (group.size() > 1) {
      EXPECT_EQ(mapped.unmap(group, all.data()).code(), Code::kInvalidArgument);
      EXPECT_EQ(map(group.rank() == 0 ? mine : mine + 64).code(), Code::kInvalidArgument);
    }
    EXPECT_EQ(map(&own).code(), Code::kInvalidArgument);
    // Member 0's memory is less than all say, so nobody has any, and all are told why.
    std::byte* const more = own.create(group.rank() == 0 ? 10'000 : 40'000).value();
    auto place = own.find(more);
    place->bytes = 40'000;
    const Status less = mapped.map(group, place, more, all.data());
    EXPECT_EQ(less.is_ok(), group.size() == 1);
    if (!less.is_ok()) {
      EXPECT_EQ(less.code(), Code::kInternal);
      EXPECT_NE(less.message().find("member 1: mapping the memory of member 0: it is less"),
                std::string::npos)
          << less.message();
    }
    EXPECT_TRUE(own.destroy(more));
    EXPECT_TRUE(own.destroy(mine));
    EXPECT_FALSE(own.destroy(mine));
  });
}

}  // namespace
}  // namespace memspan
