// SPDX-License-Identifier: Apache-2.0
// What memspan-info makes of a machine's files; the machine is a folder of the test's.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "info/gather.h"
#include "info/look_up.h"
#include "info/print.h"
#include "info/route.h"
#include "info/tls_remedies.h"
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
    return compare(files(), *one, *other);
  }
  static std::string carrier(const Findings& findings) {
    return find(findings, "heaps_and_pools").value["carrier"].text();
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

// As /proc/PID/environ has them.
std::string variables(std::initializer_list<std::string> texts) {
  std::string all;
  for (const std::string& text : texts) all += text + '\0';
  return all;
}

TEST_F(RouteTest, ObeysTheTransportsOfTheProcesses) {
  make_process(10, "1000", "7", variables({"MEMSPAN_TRANSPORT=message"}));
  make_process(11, "1000", "7", variables({"MEMSPAN_TRANSPORT=message"}));
  EXPECT_EQ(transport(route(10, 11), "heaps_and_pools"), "message");
}

TEST_F(RouteTest, ProcessesThatDifferInTheirTransportsAreAProblem) {
  make_process(10, "1000", "7", variables({"MEMSPAN_TRANSPORT=message"}));
  make_process(11, "1000", "7");
  for (const Findings& findings : {route(10, 11), route(11, 10)}) {
    const Finding& finding = find(findings, "heaps_and_pools");
    EXPECT_EQ(finding.judgement, Judgement::kProblem);
    EXPECT_THAT(finding.text, HasSubstr("process 10 (program) "));
    EXPECT_THAT(finding.text, HasSubstr("process 11 (program) "));
    EXPECT_THAT(finding.wanted, HasSubstr("the same MEMSPAN_TRANSPORT"));
  }
}

TEST_F(RouteTest, OtherTextsThatComeToTheSameTransportAreGood) {
  make_process(10, "1000", "7", variables({"MEMSPAN_TRANSPORT=mapped,cma"}));
  make_process(11, "1000", "7");
  EXPECT_EQ(verdict_of(route(10, 11)), Judgement::kGood);
}

TEST_F(RouteTest, AWrongTransportOfAProcessIsAProblem) {
  make_process(10, "1000", "7", variables({"MEMSPAN_TRANSPORT=pigeon"}));
  make_process(11, "1000", "7", variables({"MEMSPAN_TRANSPORT=pigeon"}));
  const Findings findings = route(10, 11);
  EXPECT_EQ(find(findings, "heaps_and_pools").judgement, Judgement::kProblem);
  EXPECT_THAT(find(findings, "heaps_and_pools").text, HasSubstr("pigeon"));
}

TEST_F(RouteTest, OurOwnSettingsAreNotThoseOfProcesses) {
  make_process(10, "1000", "7");
  make_process(11, "1000", "7");
  make_process(12, "1000", "7", variables({"MEMSPAN_HOST_ID=b"}));
  ::setenv("MEMSPAN_TRANSPORT", "message", 1);
  ::setenv("MEMSPAN_CARRIER", "tcp", 1);
  EXPECT_EQ(transport(route(10, 11), "heaps_and_pools"), "mapped");
  EXPECT_EQ(carrier(route(10, 12)), "Unix sockets");
  EXPECT_STREQ(std::getenv("MEMSPAN_TRANSPORT"), "message") << "they are not given back";
  ::unsetenv("MEMSPAN_TRANSPORT");
  ::unsetenv("MEMSPAN_CARRIER");
}

TEST_F(RouteTest, ObeysTheCarrierOfTheProcesses) {
  make_process(10, "1000", "7", variables({"MEMSPAN_HOST_ID=a", "MEMSPAN_CARRIER=tcp:127.0.0.1"}));
  make_process(11, "1000", "7", variables({"MEMSPAN_HOST_ID=b", "MEMSPAN_CARRIER=tcp:127.0.0.1"}));
  make_process(12, "1000", "7",
               variables({"MEMSPAN_HOST_ID=c", "MEMSPAN_CARRIER=tcp", "MEMSPAN_NET=127.0.0.2",
                          "MEMSPAN_ENCRYPT_DATA=1"}));
  EXPECT_THAT(carrier(route(10, 11)), HasSubstr("TCP from 127.0.0.1"));
  EXPECT_THAT(carrier(route(10, 12)), HasSubstr("to 127.0.0.2, under TLS"));
  EXPECT_EQ(std::getenv("MEMSPAN_CARRIER"), nullptr) << "it was left in our environment";
}

TEST_F(RouteTest, ProcessesWithCarriersOfTwoKindsAreAProblem) {
  make_process(10, "1000", "7", variables({"MEMSPAN_HOST_ID=a", "MEMSPAN_CARRIER=tcp:127.0.0.1"}));
  make_process(11, "1000", "7", variables({"MEMSPAN_HOST_ID=b"}));
  const Findings findings = route(10, 11);
  const Finding& finding = find(findings, "heaps_and_pools");
  EXPECT_EQ(finding.judgement, Judgement::kProblem);
  EXPECT_THAT(finding.text, HasSubstr("tcp:127.0.0.1"));
  EXPECT_THAT(finding.wanted, HasSubstr("the same MEMSPAN_CARRIER"));
}

TEST_F(RouteTest, ACarrierThatAProcessCannotHaveIsAProblem) {
  const std::string wrong = variables({"MEMSPAN_TRANSPORT=message", "MEMSPAN_CARRIER=pigeon"});
  make_process(10, "1000", "7", wrong);
  make_process(11, "1000", "7", wrong);
  const Findings findings = route(10, 11);
  EXPECT_EQ(find(findings, "heaps_and_pools").judgement, Judgement::kProblem);
  EXPECT_THAT(find(findings, "heaps_and_pools").text, HasSubstr("pigeon"));
}

TEST_F(RouteTest, TheProcessDecidesAndNotTheHostAtTheOtherEnd) {
  make_process(10, "1000", "7", variables({"MEMSPAN_TRANSPORT=message"}));
  link("/proc/self/ns/net", "net:[7]");
  const ProcessFacts process = must(facts_of_process(files(), 10));
  const ProcessFacts host{.name = "host here", .is_this_host = true};
  for (const Findings& findings :
       {compare(files(), process, host), compare(files(), host, process)})
    EXPECT_EQ(transport(findings, "heaps_and_pools"), "message");
}

TEST_F(RouteTest, SaysWhyNamespacesCannotBeRead) {
  write("/proc/10/status", "Name:\tp\n");
  const auto facts = facts_of_process(files(), 10);
  EXPECT_EQ(facts.code(), Code::kAuth);
  EXPECT_THAT(facts.status().message(), HasSubstr("No such file or directory"));
}

TEST_F(RouteTest, AProcessThatIsNotThereIsNamed) {
  const auto facts = facts_of_process(files(), 99);
  EXPECT_EQ(facts.code(), Code::kInvalidArgument);
  EXPECT_THAT(facts.status().message(), HasSubstr("99"));
}

// ---- the size of the heap

class HeapTest : public testing::Test {
 protected:
  HeapTest() { ::setenv("MEMSPAN_MEMORY_LIMIT", "1g", 1); }
  ~HeapTest() override {
    for (const char* name :
         {"MEMSPAN_MEMORY_LIMIT", "SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE", "MEMSPAN_COMMIT"})
      ::unsetenv(name);
  }
  static Finding with(const char* name, const char* value) {
    ::setenv(name, value, 1);
    return find(gather_budget(), "heap");
  }
};

TEST_F(HeapTest, OfAllMemoryIsGoodAndLargerOnesAreAProblem) {
  EXPECT_EQ(with("SHMEM_SYMMETRIC_SIZE", "1g").judgement, Judgement::kGood);
  const Finding finding = with("SHMEM_SYMMETRIC_SIZE", "1025m");
  EXPECT_EQ(finding.judgement, Judgement::kProblem);
  EXPECT_EQ(finding.wanted, "at most 1 GiB (1073741824 bytes)");
  EXPECT_EQ(finding.remedy, "export SHMEM_SYMMETRIC_SIZE=1024m");
}

TEST_F(HeapTest, TheOldNameCounts) {
  EXPECT_EQ(with("SMA_SYMMETRIC_SIZE", "1t").judgement, Judgement::kProblem);
}

TEST_F(HeapTest, MemoryThatIsTakenAtTheFirstUseMayBeMore) {
  ::setenv("MEMSPAN_COMMIT", "touch", 1);
  EXPECT_EQ(with("SHMEM_SYMMETRIC_SIZE", "2g").judgement, Judgement::kGood);
  EXPECT_EQ(with("SHMEM_SYMMETRIC_SIZE", "1000t").judgement, Judgement::kProblem);
}

TEST_F(HeapTest, AWrongWordForTheTimeOfTakingIsAProblem) {
  const Finding finding = with("MEMSPAN_COMMIT", "later");
  EXPECT_EQ(finding.judgement, Judgement::kProblem);
  EXPECT_THAT(finding.text, HasSubstr("later"));
}

// ---- addresses of hosts

TEST(LookUpTest, TellsThisHostFromOthers) {
  const auto is_here = [](const std::string& address) {
    return must(look_up({address, 1}, Deadline::after(kUnaskedPatience))).front().is_here;
  };
  EXPECT_TRUE(is_here("127.0.0.1"));
  EXPECT_TRUE(is_here("127.1.2.3"));
  EXPECT_TRUE(is_here("0.0.0.0"));
  EXPECT_FALSE(is_here("192.0.2.1"));
}

// ---- what mends files

class RemedyTest : public MachineTest {
 protected:
  RemedyTest() { std::filesystem::permissions(file(""), std::filesystem::perms::owner_all); }
  std::string file(const std::string& name) const { return files().path("/" + name); }
  void write(const std::string& name, const std::string& text, unsigned mode) const {
    MachineTest::write("/" + name, text);
    std::filesystem::permissions(file(name), static_cast<std::filesystem::perms>(mode));
  }
  // Of certificates "me.pem" and "me.key" of the authority "ca.pem".
  std::string remedy(const Status& failure) const {
    const StoreCertificates certificates{.authorities = {file("ca.pem")},
                                         .certificate = file("me.pem"),
                                         .key = {.path = file("me.key")}};
    return certificate_remedy(failure, certificates, TlsContext::Side::kClient);
  }
};

TEST_F(RemedyTest, ASecretIsMadeWhereThereIsNoFile) {
  EXPECT_THAT(secret_remedy(file("secret")), HasSubstr("> " + file("secret") + ")"));
}

TEST_F(RemedyTest, ASecretWithAnOpenModeIsNotOverwritten) {
  write("secret", "root:x:0:0", 0644);
  EXPECT_EQ(secret_remedy(file("secret")), "chmod 600 " + file("secret"));
}

TEST_F(RemedyTest, ASecretThatIsTooShortGetsAnotherName) {
  for (const char* text : {"short", ""}) {
    write("secret", text, 0600);
    EXPECT_THAT(secret_remedy(file("secret")), HasSubstr("> " + file("secret.new") + ")"));
  }
}

TEST_F(RemedyTest, WhatIsNoFileIsLookedAt) {
  EXPECT_THAT(secret_remedy(file("")), testing::StartsWith("ls -ld "));
}

TEST_F(RemedyTest, OfCertificatesIsThatOfTheFirstFileThatCannotBeRead) {
  const Status failure(Code::kInvalidArgument, "no");
  EXPECT_THAT(remedy(failure), HasSubstr("me.pem is missing: put it there, or name another file"));
  write("me.pem", "x", 0644);
  EXPECT_THAT(remedy(failure), HasSubstr("me.key is missing"));
  write("me.key", "x", 0644);
  EXPECT_EQ(remedy(failure), "chmod 600 " + file("me.key"));
  write("me.key", "x", 0600);
  EXPECT_THAT(remedy(failure), HasSubstr("ca.pem is missing"));
}

TEST_F(RemedyTest, OfFilesThatCanBeReadIsACommandWithTheirNames) {
  for (const char* name : {"me.pem", "me.key", "ca.pem"}) write(name, "x", 0600);
  EXPECT_EQ(remedy({Code::kInvalidArgument, "our own certificate: certificate has expired"}),
            fmt::format("openssl verify -trusted {} -untrusted {} -purpose sslclient {}",
                        file("ca.pem"), file("me.pem"), file("me.pem")));
  EXPECT_THAT(remedy({Code::kInvalidArgument,
                      fmt::format("the private key \"{}\": is not", file("me.key"))}),
              testing::StartsWith("openssl pkey -in " + file("me.key")));
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
            "verdict: 1 problem, 0 notes; fix those marked \"problem\"\n");
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
