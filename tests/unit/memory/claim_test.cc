// SPDX-License-Identifier: Apache-2.0
#include "memory/claim.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

namespace memspan {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr char kHostFile[] = "/proc/meminfo";

// A file that no other test uses.
class ClaimFileTest : public testing::Test {
 protected:
  ClaimFileTest() : file_(testing::TempDir() + "memspan-claims." + std::to_string(getpid())) {
    std::ofstream(file_) << "limit";
  }
  ~ClaimFileTest() override { std::filesystem::remove(file_); }
  const std::string file_;
};

// A child that claims `bytes` and then waits to be killed.
class Claimer {
 public:
  Claimer(const std::string& file, std::uint64_t bytes) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const Fd ready(ends[0]);
    Fd done(ends[1]);
    child_ = fork();
    if (child_ == 0) {
      ClaimFile claim(file);
      claim.resize(bytes);
      static_cast<void>(write_all(done.get(), "x"));
      while (true) pause();
    }
    done.reset();
    char byte = 0;
    EXPECT_EQ(read(ready.get(), &byte, 1), 1);
  }
  ~Claimer() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

 private:
  pid_t child_;
};

TEST_F(ClaimFileTest, GrowsShrinksAndEnds) {
  EXPECT_EQ(claimed_on(file_), 0u);
  {
    ClaimFile claim(file_);
    EXPECT_EQ(claimed_on(file_), 0u);
    for (const std::uint64_t bytes : {5 * kMiB, 7 * kMiB, 1 * kMiB, 3 * kMiB, std::uint64_t{0}}) {
      claim.resize(bytes);
      EXPECT_EQ(claimed_on(file_), bytes);
    }
    claim.resize(kMiB);
  }
  EXPECT_EQ(claimed_on(file_), 0u);
}

TEST_F(ClaimFileTest, ClaimsOfManyProcessesAddUpUntilTheyAreKilled) {
  ClaimFile own(file_);
  own.resize(1);
  {
    std::vector<std::unique_ptr<Claimer>> others;
    for (int i = 0; i < 20; ++i) others.push_back(std::make_unique<Claimer>(file_, kMiB + 3));
    EXPECT_EQ(claimed_on(file_), 20 * (kMiB + 3) + 1);
    others.erase(others.begin() + 5, others.begin() + 10);
    EXPECT_EQ(claimed_on(file_), 15 * (kMiB + 3) + 1);
  }
  EXPECT_EQ(claimed_on(file_), 1u);
}

TEST_F(ClaimFileTest, OneBeyondAllSizesIsCutAndHidesNoOther) {
  ClaimFile huge(file_);
  huge.resize(std::uint64_t{1} << 63);
  EXPECT_EQ(claimed_on(file_), std::uint64_t{1} << 42);
  const Claimer other(file_, 3);
  EXPECT_EQ(claimed_on(file_), (std::uint64_t{1} << 42) + 3);
}

TEST(ClaimFileOfNothingTest, AMissingFileClaimsNothing) {
  ClaimFile claim("/nonexistent/limit");
  claim.resize(kMiB);
  EXPECT_EQ(claimed_on("/nonexistent/limit"), 0u);
}

// Other programs claim from the host's file as well, and only add to the sum.
std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST(ClaimTest, AllClaimsOfAProcessAddUpAndEnd) {
  const std::size_t before = open_files();
  {
    Claim one(kMiB);
    EXPECT_GT(open_files(), before);
    const Claim other(kMiB);
    EXPECT_GE(claimed_on(kHostFile), 2 * kMiB);
    one.set(0);
    EXPECT_GE(claimed_on(kHostFile), kMiB);
    EXPECT_GT(open_files(), before);
  }
  EXPECT_EQ(open_files(), before);
}

TEST(ClaimTest, ThreadsMayChangeOneClaim) {
  Claim claim(8000 * kMiB + 8);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 2000; ++n) claim.subtract(kMiB);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(claim.bytes(), 8u);
}

// What it finds in a child of fork(), as the status of its end.
int in_child(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(ClaimTest, AChildOfForkKeepsNothingOfItsParentsClaims) {
  const std::size_t before = open_files();
  auto claim = std::make_unique<Claim>(kMiB);
  EXPECT_EQ(in_child([&] { return open_files() == before; }), 0);
  EXPECT_EQ(in_child([&] {
              claim.reset();
              return open_files() == before;
            }),
            0);
  EXPECT_EQ(in_child([&] {
              const Claim own(kMiB);
              claim->subtract(kMiB / 2);
              return open_files() > before;
            }),
            0);
  EXPECT_GE(claimed_on(kHostFile), kMiB);
}

}  // namespace
}  // namespace memspan
