// SPDX-License-Identifier: Apache-2.0
// What memspan-info makes of a machine's files; the machine is a folder of the test's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "info/gather.h"
#include "info/print.h"
#include "info/route.h"
#include "support/must.h"

namespace memspan::info {
namespace {

using testing::HasSubstr;

class MachineTest : public testing::Test {
 protected:
  MachineTest() {
    char name[] = "/tmp/memspan-machine-XXXXXX";
    root_ = mkdtemp(name);
  }
  ~MachineTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = root_ + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // As `ls -l /proc/PID/ns` has them.
  void link(const std::string& name, const std::string& to) const {
    const std::filesystem::path path = root_ + name;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::create_symlink(to, path);
  }
  SystemFiles files() const { return SystemFiles(root_); }

 private:
  std::string root_;
};

const Finding& find(const Findings& findings, std::string_view key) {
  for (const Finding& finding : findings)
    if (finding.key == key) return finding;
  ADD_FAILURE() << "there is no finding " << key;
  return findings.front();
}

class LimitsTest : public MachineTest {
 protected:
  // A line of /proc/self/limits each; the others are unlimited.
  Findings with(const std::string& line) const {
    write("/proc/self/limits",
          "Limit                     Soft Limit           Hard Limit           Units\n" + line +
              "\n");
    return gather_limits(files());
  }
};

TEST_F(LimitsTest, AreGoodWithoutALimit) {
  EXPECT_EQ(verdict_of(with("")), Judgement::kGood);
}

TEST_F(LimitsTest, FewDescriptorsAreAProblemThatUlimitMends) {
  const Findings findings =
      with("Max open files            32                   4096                 files");
  const Finding& finding = find(findings, "descriptors");
  EXPECT_EQ(finding.judgement, Judgement::kProblem);
  EXPECT_EQ(finding.value.number(), 32);
  EXPECT_EQ(finding.remedy, "ulimit -n 4096");
  EXPECT_THAT(finding.text, HasSubstr("32 open files"));
}

TEST_F(LimitsTest, AHardLimitIsMendedElsewhere) {
  const Findings findings =
      with("Max open files            256                  256                  files");
  const Finding& finding = find(findings, "descriptors");
  EXPECT_EQ(finding.judgement, Judgement::kNote);
  EXPECT_THAT(finding.remedy, HasSubstr("limits.conf"));
}

TEST_F(LimitsTest, SizesOfFilesAndAddressesMustBeUnlimited) {
  EXPECT_EQ(find(with("Max file size             1048576              unlimited            bytes"),
                 "file_bytes")
                .judgement,
            Judgement::kProblem);
  const Findings findings =
      with("Max address space         512000000            unlimited            bytes");
  EXPECT_EQ(find(findings, "address_space").judgement, Judgement::kProblem);
  EXPECT_EQ(find(findings, "address_space").remedy, "ulimit -v unlimited");
}

TEST_F(LimitsTest, LockedMemoryMattersWithRdmaOnly) {
  const char* const line =
      "Max locked memory         65536                65536                bytes";
  EXPECT_EQ(find(with(line), "locked_memory").judgement, Judgement::kGood);
  write("/sys/class/infiniband/mlx5_0/name", "x");
  EXPECT_EQ(find(with(line), "locked_memory").judgement, Judgement::kNote);
}

using MemoryTest = MachineTest;

TEST_F(MemoryTest, TellsWhichWayHugePagesCome) {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  write(folder + "enabled", "always [madvise] never\n");
  write(folder + "shmem_enabled", "always within_size [advise] never deny force\n");
  EXPECT_EQ(find(gather_memory(files()), "transparent_huge_pages").value.text(), "advice");
  write(folder + "shmem_enabled", "always within_size advise [never] deny force\n");
  EXPECT_EQ(find(gather_memory(files()), "transparent_huge_pages").value.text(), "collapse");
  write(folder + "enabled", "always madvise [never]\n");
  const Findings findings = gather_memory(files());
  const Finding& none = find(findings, "transparent_huge_pages");
  EXPECT_EQ(none.value.text(), "none");
  EXPECT_EQ(none.judgement, Judgement::kNote);
  EXPECT_THAT(none.remedy, HasSubstr("shmem_enabled"));
}

TEST_F(MemoryTest, FewMappingsAreNoted) {
  write("/proc/sys/vm/max_map_count", "1000\n");
  EXPECT_EQ(find(gather_memory(files()), "mappings").judgement, Judgement::kNote);
}

TEST_F(MemoryTest, NoDevShmIsGood) {
  EXPECT_EQ(find(gather_memory(files()), "dev_shm").judgement, Judgement::kGood);
}

using HostTest = MachineTest;

TEST_F(HostTest, TheLowestQuotaOfTheGroupsAboveCounts) {
  write("/proc/self/cgroup", "0::/slice/service\n");
  const auto quota = [&] { return find(gather_host(files()), "core_quota").value.number(); };
  write("/sys/fs/cgroup/slice/service/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
  write("/sys/fs/cgroup/slice/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5);
  write("/sys/fs/cgroup/slice/service/cpu.max", "25000 100000\n");
  EXPECT_EQ(quota(), 0.25);
  // Version 1, in a container that has its group mounted at the root.
  write("/proc/self/cgroup", "4:cpu,cpuacct:/docker/0123\n3:memory:/docker/0123\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 1.5);
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(quota(), 0);
}

TEST_F(HostTest, AQuotaBelowTheCoresIsNoted) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  const Findings findings = gather_host(files());
  EXPECT_EQ(find(findings, "core_quota").judgement, Judgement::kNote);
  EXPECT_EQ(find(findings, "core_quota").value.number(), 0.5);
  write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(find(gather_host(files()), "core_quota").judgement, Judgement::kGood);
}

TEST_F(HostTest, NamesTheProcessorAndCountsNodes) {
  write("/proc/cpuinfo", "processor : 0\nmodel name\t: Some Processor 9000\n");
  write("/sys/devices/system/node/node0/cpulist", "0");
  write("/sys/devices/system/node/node1/cpulist", "1");
  const Findings findings = gather_host(files());
  EXPECT_EQ(find(findings, "processor").text, "Some Processor 9000");
  EXPECT_EQ(find(findings, "numa_nodes").value.number(), 2);
}

TEST_F(HostTest, PtraceScopesFromTwoAreNoted) {
  EXPECT_EQ(gather_ptrace_scope(files()).judgement, Judgement::kGood);
  for (const auto& [scope, judgement] :
       {std::pair("1", Judgement::kGood), std::pair("2", Judgement::kNote),
        std::pair("3", Judgement::kNote)}) {
    write("/proc/sys/kernel/yama/ptrace_scope", scope);
    EXPECT_EQ(gather_ptrace_scope(files()).judgement, judgement) << scope;
  }
}

// ---- routes

class RouteTest : public MachineTest {
 protected:
  void make_process(int number, const std::string& user, const std::string& network,
                    const std::string& environment = "") const {
    const std::string folder = "/proc/" + std::to_string(number) + "/";
    write(folder + "status", "Name:\tp\nUid:\t" + user + "\t0\t0\t0\nCapEff:\t0000000000000000\n");
    write(folder + "comm", "program\n");
    write(folder + "environ", environment);
    link(folder + "ns/net", "net:[" + network + "]");
    link(folder + "ns/pid", "pid:[1]");
  }
  Findings route(std::uint64_t from, std::uint64_t to) const {
    const auto one = facts_of_process(files(), from);
    const auto other = facts_of_process(files(), to);
    EXPECT_TRUE(one.is_ok() && other.is_ok());
    return must(compare(files(), *one, *other));
  }
  static std::string transport(const Findings& findings, std::string_view key) {
    return find(findings, key).value["transport"].text();
  }
};

TEST_F(RouteTest, OfOneNodeIsMappedMemory) {
  make_process(10, "1000", "7");
  make_process(11, "1000", "7");
  const Findings findings = route(10, 11);
  EXPECT_EQ(transport(findings, "heaps_and_pools"), "mapped");
  EXPECT_EQ(transport(findings, "registered_memory"), "cma");
  EXPECT_TRUE(find(findings, "same_node").value.truth());
  EXPECT_EQ(verdict_of(findings), Judgement::kGood);
}

TEST_F(RouteTest, OfTwoNetworksOrHostIdsIsMessages) {
  make_process(10, "1000", "7");
  make_process(11, "1000", "8");
  make_process(12, "1000", "7", std::string("A=1\0MEMSPAN_HOST_ID=b\0", 22));
  for (const std::uint64_t other : {11, 12}) {
    const Findings findings = route(10, other);
    EXPECT_EQ(transport(findings, "heaps_and_pools"), "message") << other;
    EXPECT_FALSE(find(findings, "same_node").value.truth());
  }
}

TEST_F(RouteTest, AProcessOfOurNetworkOrHostIdIsOfThisHost) {
  make_process(10, "1000", "7");
  make_process(11, "1000", "8");
  make_process(12, "1000", "7", std::string("MEMSPAN_HOST_ID=b\0", 18));
  link("/proc/self/ns/net", "net:[7]");
  const auto is_here = [&](std::uint64_t process) {
    return facts_of_process(files(), process)->is_this_host;
  };
  EXPECT_TRUE(is_here(10));
  EXPECT_FALSE(is_here(11));
  EXPECT_FALSE(is_here(12));
  ::setenv("MEMSPAN_HOST_ID", "b", 1);
  EXPECT_FALSE(is_here(10));
  EXPECT_TRUE(is_here(12));
  ::unsetenv("MEMSPAN_HOST_ID");
}

TEST_F(RouteTest, SaysWhyTheKernelDoesNotAllowIt) {
  make_process(10, "1000", "7");
  make_process(11, "1001", "7");
  make_process(12, "1000", "7");
  EXPECT_THAT(find(route(10, 11), "registered_memory").text, HasSubstr("user 1001"));
  EXPECT_EQ(verdict_of(route(10, 11)), Judgement::kProblem);
  write("/proc/sys/kernel/yama/ptrace_scope", "2");
  EXPECT_THAT(find(route(10, 12), "registered_memory").text, HasSubstr("ptrace_scope is 2"));
}

TEST_F(RouteTest, ObeysTheTransportsOfTheProcess) {
  make_process(10, "1000", "7", std::string("MEMSPAN_TRANSPORT=message\0", 26));
  make_process(11, "1000", "7");
  EXPECT_EQ(transport(route(10, 11), "heaps_and_pools"), "message");
}

TEST_F(RouteTest, AProcessThatIsNotThereIsNamed) {
  const auto facts = facts_of_process(files(), 99);
  EXPECT_EQ(facts.code(), Code::kInvalidArgument);
  EXPECT_THAT(facts.status().message(), HasSubstr("99"));
}

// ---- printing

const Findings kSample = {
    {.group = "limits", .key = "descriptors", .text = "32 open files", .value = 32},
    {.group = "limits",
     .key = "file_bytes",
     .text = "1 MiB a file",
     .value = 1048576,
     .judgement = Judgement::kProblem,
     .wanted = "unlimited",
     .remedy = "ulimit -f unlimited"},
    {.group = "host", .key = "name", .text = "here"}};

TEST(PrintTest, TextHasAGroupOnceAndMarksWhatIsNotGood) {
  EXPECT_EQ(to_text(kSample),
            "limits       descriptors: 32 open files\n"
            "             [problem] file bytes: 1 MiB a file\n"
            "host         name: here\n");
}

TEST(PrintTest, ADiagnosisEndsInAVerdict) {
  EXPECT_EQ(to_diagnosis(kSample),
            "problem   limits file bytes: 1 MiB a file\n"
            "          wanted: unlimited\n"
            "          do: ulimit -f unlimited\n"
            "verdict: 1 problem, 0 notes; what is marked \"problem\" has to be mended\n");
  EXPECT_EQ(to_diagnosis({kSample.front()}), "verdict: good\n");
}

TEST(PrintTest, JsonHasEveryFindingByGroupAndKey) {
  const auto parsed = json::parse(to_json(kSample));
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  EXPECT_EQ((*parsed)["verdict"].text(), "problem");
  EXPECT_EQ((*parsed)["limits"]["descriptors"]["value"].number(), 32);
  EXPECT_EQ((*parsed)["limits"]["file_bytes"]["remedy"].text(), "ulimit -f unlimited");
  EXPECT_TRUE((*parsed)["limits"]["descriptors"]["remedy"].is_null());
  EXPECT_EQ((*parsed)["host"]["name"]["text"].text(), "here");
}

}  // namespace
}  // namespace memspan::info
