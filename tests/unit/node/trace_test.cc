// SPDX-License-Identifier: Apache-2.0
#include "observe/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "observe/counters.h"

namespace memspan {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TraceTest : public testing::Test {
 protected:
  TraceTest() {
    std::string folder = testing::TempDir() + "traceXXXXXX";
    folder_ = mkdtemp(folder.data());
    file_ = folder_ + "/trace.json";
  }
  ~TraceTest() override { std::filesystem::remove_all(folder_); }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(file_).rdbuf();
    return all.str();
  }
  static TraceOwner owner(int rank, const char* job = "job-1") {
    return {.kind = MemberKind::kJob, .name = job, .rank = rank};
  }
  std::string folder_;
  std::string file_;
};

TEST_F(TraceTest, NamesOfFiles) {
  const std::string process = std::to_string(getpid());
  EXPECT_EQ(trace_path("a", owner(3)), "a");
  EXPECT_EQ(trace_path("a%r.%p.%%r%x%", owner(3)), "a3." + process + ".%r%x%");
  EXPECT_EQ(trace_path("a", {.kind = MemberKind::kEndpoint, .name = "x", .rank = 0}),
            "a." + process);
}

TEST_F(TraceTest, ProcessesOfAJobAddToOneFile) {
  ASSERT_TRUE(append_to_trace(file_, owner(0), {"{\"a\":1}"}, 0).is_ok());
  const std::string first = text();
  EXPECT_THAT(first, StartsWith("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"owner\":\"job-1\"}"));
  EXPECT_THAT(first, EndsWith(",\n{\"a\":1}\n]}\n"));
  ASSERT_TRUE(append_to_trace(file_, owner(1), {"{\"b\":1}", "{\"b\":2}"}, 7).is_ok());
  EXPECT_THAT(text(), StartsWith(first.substr(0, first.size() - 4) + ",\n"));
  EXPECT_THAT(text(), HasSubstr("7 older events lost"));
  EXPECT_THAT(text(), EndsWith(",\n{\"b\":1},\n{\"b\":2}\n]}\n"));
}

TEST_F(TraceTest, AFileOfAnotherJobBeginsAnew) {
  ASSERT_TRUE(append_to_trace(file_, owner(0), {"{\"old\":1}"}, 0).is_ok());
  ASSERT_TRUE(append_to_trace(file_, owner(0, "job-2"), {"{\"new\":1}"}, 0).is_ok());
  EXPECT_THAT(text(), Not(HasSubstr("old")));
  EXPECT_THAT(text(), EndsWith(",\n{\"new\":1}\n]}\n"));
}

TEST_F(TraceTest, WhatAProcessWasKilledInTheMidstOfIsCutOff) {
  ASSERT_TRUE(append_to_trace(file_, owner(0), {"{\"whole\":1}", "{\"half\":{}}"}, 0).is_ok());
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) - 8);
  ASSERT_TRUE(append_to_trace(file_, owner(1), {"{\"next\":1}"}, 0).is_ok());
  EXPECT_THAT(text(), HasSubstr("{\"whole\":1},\n{\"ph\":\"M\""));
  EXPECT_THAT(text(), Not(HasSubstr("half")));
  EXPECT_THAT(text(), EndsWith(",\n{\"next\":1}\n]}\n"));
}

TEST_F(TraceTest, APlaceThatCannotBeWrittenIsNamed) {
  const Status status = append_to_trace(folder_ + "/no/where", owner(0), {"{}"}, 0);
  EXPECT_EQ(status.code(), Code::kSystem);
  EXPECT_THAT(status.message(), HasSubstr(folder_ + "/no/where"));
}

// Before anything is written, and nothing is made there.
TEST_F(TraceTest, APlaceThatCannotBeWrittenIsToldAtTheStart) {
  const auto warning = [](const std::string& file, int rank) {
    setenv("MEMSPAN_TRACE", file.c_str(), 1);
    testing::internal::CaptureStderr();
    EXPECT_EQ(start_trace({MemberKind::kJob, "job-1", rank}), !file.empty());
    unsetenv("MEMSPAN_TRACE");
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(warning(file_, 0), "");
  EXPECT_FALSE(std::filesystem::exists(file_));
  EXPECT_EQ(warning("trace-of-no-folder.json", 0), "");
  EXPECT_THAT(
      warning(folder_ + "/no/%r", 0),
      HasSubstr(folder_ + "/no/0 cannot be written, so the trace will be lost: the folder " +
                folder_ + "/no/: No such file"));
  EXPECT_EQ(warning(folder_ + "/no/%r", 1), "");  // one line is enough for a job
  EXPECT_THAT(warning(folder_, 0), HasSubstr("Is a directory"));
  std::filesystem::create_symlink(folder_ + "/somebodys", file_);
  EXPECT_THAT(warning(file_, 0), HasSubstr("is a symbolic link"));
}

TEST_F(TraceTest, ASymbolicLinkIsRefused) {
  std::filesystem::create_symlink(folder_ + "/somebodys", file_);
  const Status status = append_to_trace(file_, owner(0), {"{}"}, 0);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(file_ + " is a symbolic link"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/somebodys"));
}

// Of threads that ended, too, as long as there are not too many; then the oldest go.
TEST_F(TraceTest, ManyThreadsThatComeAndGo) {
  setenv("MEMSPAN_TRACE", file_.c_str(), 1);
  constexpr int kThreads = 300;
  {
    auto job = ListedMember::list(MemberKind::kJob, "job-1", 0, 1);
    ASSERT_TRUE(job.is_ok());
    for (std::uint64_t i = 1; i <= kThreads; ++i)
      std::thread([i] { const RecordedCall call(CallKind::kPut, "put", 0, i); }).join();
  }
  unsetenv("MEMSPAN_TRACE");
  EXPECT_THAT(text(), HasSubstr("\"bytes\":300,"));
  EXPECT_THAT(text(), HasSubstr("\"bytes\":45,"));
  EXPECT_THAT(text(), Not(HasSubstr("\"bytes\":40,")));
  EXPECT_THAT(text(), HasSubstr("older events lost"));
}

// Rings are of the process, so this is one test.
TEST_F(TraceTest, TheLastCallsAndWaitsOfAThreadAreWritten) {
  setenv("MEMSPAN_TRACE", file_.c_str(), 1);
  {
    auto job = ListedMember::list(MemberKind::kJob, "job-1", 2, 3);
    ASSERT_TRUE(job.is_ok()) << job.status().to_string();
    constexpr int kMostEvents = 65536;
    for (int i = 0; i < kMostEvents + 2; ++i)
      const RecordedCall recorded(CallKind::kPut, "old", 1, 8);
    const auto begin = Clock::now();
    record_wait("barrier", begin, 1);
    const RecordedCall recorded(CallKind::kGet, "get", kNobodyNamed, 5);
  }
  unsetenv("MEMSPAN_TRACE");
  EXPECT_THAT(text(), HasSubstr("4 older events lost"));
  EXPECT_THAT(text(), HasSubstr(R"("cat":"put","name":"old","pid":2)"));
  EXPECT_THAT(text(), HasSubstr(R"("cat":"wait","name":"wait in barrier")"));
  EXPECT_THAT(text(), HasSubstr(R"("args":{"for":1})"));
}

}  // namespace
}  // namespace memspan
