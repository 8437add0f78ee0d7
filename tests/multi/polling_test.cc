// SPDX-License-Identifier: Apache-2.0
// PEs that share one core and poll for each other. on_one_core.py runs it so.
#include <sched.h>

#include <functional>
#include <string>

#include "job.h"

namespace memspan::multi {
namespace {

bool is_on_one_core() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) == 1 && peers() > 1;
}

constexpr std::uint64_t kRounds = 50;
// Of all PEs together, for one hand-over. A PE that keeps the core makes a hundred thousand and
// more until its time slice is over; one that lets others run makes some tens. The host may give
// the core to other processes meanwhile, which costs no looks.
constexpr std::uint64_t kLooksPerTurn = 2000;

// The first turns do not count: until a word has changed for the first time it may be a constant.
constexpr std::uint64_t kFirstRounds = 5;

// A turn goes around; each PE polls for its own, by `look`, which tells whether the word is not 0.
void expect_few_looks(const std::string& how, const std::function<bool(std::uint64_t*)>& look) {
  Symmetric<std::uint64_t> turn(1);
  Symmetric<std::uint64_t> looks(2);
  if (me() == 0) turn[0] = 1;
  shmem_barrier_all();
  for (std::uint64_t round = 0; round < kFirstRounds + kRounds; ++round) {
    if (round == kFirstRounds) looks[0] = 0;
    do ++looks[0];
    while (!look(turn.get()));
    shmem_uint64_p(turn.get(), 0, me());
    shmem_fence();
    shmem_uint64_atomic_set(turn.get(), 1, next());
  }
  shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, &looks[1], &looks[0], 1);
  const std::uint64_t turns = kRounds * static_cast<std::uint64_t>(peers());
  ::testing::Test::RecordProperty(how, std::to_string(looks[1] / turns));
  EXPECT_LT(looks[1], turns * kLooksPerTurn) << how;
}

class PollingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_on_one_core()) GTEST_SKIP() << "does not apply: the PEs are not all bound to one core";
  }
};

TEST_F(PollingTest, ATestLetsOthersRun) {
  expect_few_looks(
      "test", [](std::uint64_t* word) { return shmem_uint64_test(word, SHMEM_CMP_NE, 0) != 0; });
}

TEST_F(PollingTest, TestsOfSetsLetOthersRun) {
  expect_few_looks("test_all", [](std::uint64_t* word) {
    return shmem_uint64_test_all(word, 1, nullptr, SHMEM_CMP_NE, 0) != 0;
  });
  expect_few_looks("test_any", [](std::uint64_t* word) {
    return shmem_uint64_test_any(word, 1, nullptr, SHMEM_CMP_NE, 0) == 0;
  });
  expect_few_looks("test_some", [](std::uint64_t* word) {
    std::size_t index = 0;
    return shmem_uint64_test_some(word, 1, &index, nullptr, SHMEM_CMP_NE, 0) == 1;
  });
}

TEST_F(PollingTest, FetchesOfAnOwnWordLetOthersRun) {
  expect_few_looks("atomic_fetch",
                   [](std::uint64_t* word) { return shmem_uint64_atomic_fetch(word, me()) != 0; });
  expect_few_looks("g", [](std::uint64_t* word) { return shmem_uint64_g(word, me()) != 0; });
  expect_few_looks("signal_fetch",
                   [](std::uint64_t* word) { return shmem_signal_fetch(word) != 0; });
  expect_few_looks("ctx_g", [](std::uint64_t* word) {
    return shmem_ctx_uint64_g(SHMEM_CTX_DEFAULT, word, me()) != 0;
  });
}

TEST_F(PollingTest, FetchesOfAnOwnVariableLetOthersRun) {
  static std::uint64_t variable;
  Symmetric<std::uint64_t> looks(2);
  variable = me() == 0 ? 1 : 0;
  shmem_barrier_all();
  for (std::uint64_t round = 0; round < kFirstRounds + kRounds; ++round) {
    if (round == kFirstRounds) looks[0] = 0;
    do ++looks[0];
    while (shmem_uint64_atomic_fetch(&variable, me()) == 0);
    variable = 0;
    shmem_uint64_atomic_set(&variable, 1, next());
  }
  shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, &looks[1], &looks[0], 1);
  EXPECT_LT(looks[1], kRounds * static_cast<std::uint64_t>(peers()) * kLooksPerTurn);
}

}  // namespace
}  // namespace memspan::multi
