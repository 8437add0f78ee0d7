// SPDX-License-Identifier: Apache-2.0
#include "pgas/rma.h"

#include <numeric>

#include "unit/pgas/thread_job.h"

namespace memspan {
namespace {

using namespace pgas;

// The first bytes of each peer's heap, without an allocation.
template <typename T>
T* heap_start(Team& team) {
  return reinterpret_cast<T*>(team.world().heap().base());
}

class RmaTest : public testing::TestWithParam<JobShape> {};
INSTANTIATE_TEST_SUITE_P(Jobs, RmaTest, all_job_shapes(), job_name);

TEST_P(RmaTest, PutsToTheNextAndGetsBackFromIt) {
  run_job(GetParam(), [](Team& team) {
    const RouteTable& table = team.world().routes();
    int next = (team.index() + 1) % team.size();
    int previous = (team.index() + team.size() - 1) % team.size();
    auto* place = heap_start<std::uint64_t>(team);
    for (std::size_t count : {1u, 3u, 1000u, 100'000u}) {
      std::vector<std::uint64_t> sent(count);
      std::iota(sent.begin(), sent.end(), static_cast<std::uint64_t>(team.index()) << 32);
      const Route* route = table.find(place, count * 8, next);
      ASSERT_NE(route, nullptr);
      ASSERT_TRUE(put(table, *route, place, sent.data(), count * 8).is_ok());
      ASSERT_TRUE(quiet_links(table).is_ok());
      ASSERT_TRUE(team.barrier("test").is_ok());
      EXPECT_EQ(place[count - 1], (static_cast<std::uint64_t>(previous) << 32) + count - 1);
      std::vector<std::uint64_t> got(count);
      ASSERT_TRUE(get(table, *route, got.data(), place, count * 8).is_ok());
      EXPECT_EQ(got, sent);
      ASSERT_TRUE(team.barrier("test").is_ok());
    }
  });
}

TEST_P(RmaTest, StridesPlaceEveryElementAndNothingBetween) {
  run_job(GetParam(), [](Team& team) {
    const RouteTable& table = team.world().routes();
    int next = (team.index() + 1) % team.size();
    auto* place = heap_start<int>(team);
    std::fill_n(place, 64, -1);
    ASSERT_TRUE(team.barrier("test").is_ok());
    int source[32];
    std::iota(source, source + 32, 0);
    const Route& route = *table.find(place, 64 * sizeof(int), next);
    ASSERT_TRUE(move_strided(MoveDirection::kPut, table, route, place, source, Strides{3, 2, 1, 10},
                             sizeof(int))
                    .is_ok());
    ASSERT_TRUE(move_strided(MoveDirection::kPut, table, route, place + 40, source,
                             Strides{5, 4, 2, 4}, sizeof(int))
                    .is_ok());
    ASSERT_TRUE(quiet_links(table).is_ok());
    ASSERT_TRUE(team.barrier("test").is_ok());
    for (int i = 0; i < 30; ++i) EXPECT_EQ(place[i], i % 3 == 0 ? i / 3 * 2 : -1) << i;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(place[40 + i], i % 5 < 2 ? i / 5 * 4 + i % 5 : -1) << i;
    int got[10];
    ASSERT_TRUE(move_strided(MoveDirection::kGet, table, route, got, place, Strides{1, 3, 1, 10},
                             sizeof(int))
                    .is_ok());
    for (int i = 0; i < 10; ++i) EXPECT_EQ(got[i], 2 * i);
    ASSERT_TRUE(team.barrier("test").is_ok());
  });
}

TEST_P(RmaTest, AtomicsOfAllPeersOnOneWordAddUp) {
  run_job(GetParam(), [](Team& team) {
    constexpr int kRounds = 1000;
    const RouteTable& table = team.world().routes();
    auto* word = heap_start<std::int64_t>(team);
    auto* narrow = reinterpret_cast<std::int32_t*>(word + 1);
    const Route& route = *table.find(word, 16, 0);
    for (int i = 0; i < kRounds; ++i) {
      std::int64_t before = -1;
      ASSERT_TRUE(
          (atomic<AtomicKind::kAdd, std::int64_t>(table, route, word, 1, 0, &before).is_ok()));
      ASSERT_GE(before, 0);
      ASSERT_TRUE(
          (atomic<AtomicKind::kAdd, std::int32_t>(table, route, narrow, -1, 0, nullptr).is_ok()));
    }
    ASSERT_TRUE(quiet_links(table).is_ok());
    ASSERT_TRUE(team.barrier("test").is_ok());
    std::int64_t sum = 0;
    ASSERT_TRUE((atomic<AtomicKind::kFetch, std::int64_t>(table, route, word, 0, 0, &sum).is_ok()));
    EXPECT_EQ(sum, std::int64_t{kRounds} * team.size());
    std::int32_t down = 0;
    ASSERT_TRUE(
        (atomic<AtomicKind::kFetch, std::int32_t>(table, route, narrow, 0, 0, &down).is_ok()));
    EXPECT_EQ(down, -kRounds * team.size());
  });
}

TEST_P(RmaTest, WhoSeesTheSignalSeesTheData) {
  run_job(GetParam(), [](Team& team) {
    const RouteTable& table = team.world().routes();
    int next = (team.index() + 1) % team.size();
    auto* word = heap_start<std::uint64_t>(team);
    std::uint64_t* data = word + 16;
    const Route& route = *table.find(word, 1 << 20, next);
    std::vector<std::uint64_t> sent(100);
    for (std::uint64_t round = 1; round <= 300; ++round) {
      std::fill(sent.begin(), sent.end(), round);
      ASSERT_TRUE(put_signal(table, {route, route}, data, sent.data(), sent.size() * 8, word, round,
                             SignalOp::kSet)
                      .is_ok());
      Status seen = wait_for(team.world().waiting(), WaitsFor::kData, "test",
                             Deadline::after(std::chrono::seconds(60)),
                             [&] { return __atomic_load_n(word, __ATOMIC_ACQUIRE) == round; });
      ASSERT_TRUE(seen.is_ok());
      for (int i = 0; i < 100; ++i) ASSERT_EQ(data[i], round);
      ASSERT_TRUE(team.barrier("test").is_ok());
    }
    ASSERT_TRUE(
        put_signal(table, {route, route}, data, nullptr, 0, word, 5, SignalOp::kAdd).is_ok());
    ASSERT_TRUE(quiet_links(table).is_ok());
    ASSERT_TRUE(team.barrier("test").is_ok());
    EXPECT_EQ(__atomic_load_n(word, __ATOMIC_ACQUIRE), 305u);
  });
}

TEST(RouteTest, FindsOnlyWhatIsSymmetricAndThere) {
  run_job(2, false, [](Team& team) {
    const RouteTable& table = team.world().routes();
    auto* base = heap_start<std::byte>(team);
    int local = 0;
    EXPECT_NE(table.find(base, kJobHeapBytes, 1), nullptr);
    EXPECT_EQ(table.find(base + 1, kJobHeapBytes, 1), nullptr);
    EXPECT_EQ(table.find(base - 1, 1, 1), nullptr);
    EXPECT_EQ(table.find(base, SIZE_MAX, 1), nullptr);
    EXPECT_EQ(table.find(&local, sizeof local, 1), nullptr);
    EXPECT_EQ(table.find(base, 1, 2), nullptr);
    EXPECT_EQ(table.find(base, 1, -1), nullptr);
  });
}

}  // namespace
}  // namespace memspan
