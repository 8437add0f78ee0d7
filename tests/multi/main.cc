// SPDX-License-Identifier: Apache-2.0
// Runs the same tests in the same order on every process of a job.
#include <gtest/gtest.h>
#include <shmem.h>

#include <cstdio>

namespace {

class Job final : public testing::Environment {
 public:
  void SetUp() override {
    int provided = 0;
    ASSERT_EQ(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided), 0);
  }
  void TearDown() override { shmem_finalize(); }
};

// Every test starts together, so that one test's traffic never meets the next one's checks.
class Together final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { shmem_barrier_all(); }
  void OnTestEnd(const testing::TestInfo&) override { shmem_barrier_all(); }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new Job);
  testing::UnitTest::GetInstance()->listeners().Append(new Together);
  int result = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::fprintf(stderr, "no test matches the filter\n");
    return 1;
  }
  return result;
}
