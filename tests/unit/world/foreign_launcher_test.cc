// SPDX-License-Identifier: Apache-2.0
#include "world/foreign_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace memspan {
namespace {

using Protocol = ForeignLauncher::Protocol;
using Variables = std::map<const char*, const char*>;

class ForeignLauncherTest : public testing::Test {
 protected:
  ForeignLauncherTest() {
    for (const char* name :
         {"MEMSPAN_LAUNCH", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "FLUX_TASK_RANK",
          "FLUX_JOB_SIZE", "FLUX_JOB_ID", "PALS_RANKID", "PALS_APID", "PMI_SIZE", "PMI_RANK",
          "PMI_FD", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_JOB_ID", "SLURM_STEP_ID",
          "PMIX_RANK", "PMIX_NAMESPACE", "WORLD_SIZE", "RANK"})
      unsetenv(name);
  }
  static Result<std::optional<ForeignLauncher>> find(const Variables& variables) {
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    auto found = find_foreign_launcher();
    for (const auto& [name, value] : variables) unsetenv(name);
    return found;
  }
};

TEST_F(ForeignLauncherTest, NobodyStartedAProcessWithoutTheirVariables) {
  EXPECT_FALSE(find({}).value().has_value());
  // The shell of a batch script.
  EXPECT_FALSE(find({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "4"}}).value().has_value());
}

TEST_F(ForeignLauncherTest, TellsRankSizeAndJob) {
  const auto slurm = find({{"SLURM_STEP_NUM_TASKS", "4"},
                           {"SLURM_PROCID", "3"},
                           {"SLURM_JOB_ID", "17"},
                           {"SLURM_STEP_ID", "2"}});
  EXPECT_EQ((*slurm)->rank, 3);
  EXPECT_EQ((*slurm)->size, 4);
  EXPECT_EQ((*slurm)->job, "17.2");
  EXPECT_EQ((*slurm)->protocol, Protocol::kNone);
  const auto prte = find({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "prte@1"}});
  EXPECT_EQ((*prte)->size, std::nullopt);
  EXPECT_EQ((*prte)->protocol, Protocol::kPmix);
}

TEST_F(ForeignLauncherTest, NamesTheVariableThatShowsALauncher) {
  const auto variable_with = [](const Variables& variables) {
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    const char* const variable = launcher_variable();
    for (const auto& [name, value] : variables) unsetenv(name);
    return std::string(variable == nullptr ? "none" : variable);
  };
  EXPECT_EQ(variable_with({{"MEMSPAN_LAUNCH", "0"}, {"WORLD_SIZE", "2"}}), "MEMSPAN_LAUNCH");
  EXPECT_EQ(variable_with({{"FLUX_TASK_RANK", "0"}}), "FLUX_TASK_RANK");
  EXPECT_EQ(variable_with({{"PMIX_RANK", "0"}}), "PMIX_RANK");
  EXPECT_EQ(variable_with({{"PMI_SIZE", "two"}}), "PMI_SIZE");
  // A rank of nothing, and the shell of a batch script.
  EXPECT_EQ(variable_with({{"RANK", "0"}}), "none");
  EXPECT_EQ(variable_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), "none");
}

TEST_F(ForeignLauncherTest, TheInnermostLauncherCounts) {
  const Variables slurm{{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "3"}};
  Variables hydra = slurm;
  hydra.insert({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}, {"PMI_FD", "5"}});
  EXPECT_EQ((*find(hydra))->size, 2);
  EXPECT_EQ((*find(hydra))->protocol, Protocol::kPmi);
  Variables flux = hydra;
  flux.insert({{"FLUX_TASK_RANK", "6"}, {"FLUX_JOB_SIZE", "7"}});
  EXPECT_EQ((*find(flux))->size, 7);
  EXPECT_EQ((*find(flux))->protocol, Protocol::kPmi);
  Variables pmix = slurm;
  pmix.insert({"PMIX_NAMESPACE", "slurm.1.0"});
  EXPECT_EQ((*find(pmix))->protocol, Protocol::kPmix);
}

TEST_F(ForeignLauncherTest, RefusesWhatIsNoNumber) {
  for (const char* size : {"0", "-1", "many", ""}) {
    const auto found = find({{"PMI_SIZE", size}, {"PMI_RANK", "0"}});
    EXPECT_EQ(found.code(), Code::kInvalidArgument) << size;
    EXPECT_THAT(found.status().message(), testing::HasSubstr("PMI_SIZE"));
  }
}

TEST_F(ForeignLauncherTest, ARefusalSaysWhoWhyAndWhatElse) {
  const auto slurm = find({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "3"}});
  const Status refusal = refuse(**slurm, "of no reason");
  EXPECT_EQ(refusal.code(), Code::kNotSupported);
  for (const char* part : {"Slurm", "SLURM_STEP_NUM_TASKS is 4", "of no reason", "--mpi=pmix",
                           "oshrun -n 4", "MEMSPAN_STORE", "MASTER_ADDR"})
    EXPECT_THAT(refusal.message(), testing::HasSubstr(part));
}

}  // namespace
}  // namespace memspan
