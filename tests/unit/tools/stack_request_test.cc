// SPDX-License-Identifier: Apache-2.0
#include "launcher/stack_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace memspan::launcher {
namespace {

using testing::HasSubstr;
using testing::Optional;

constexpr const char* kHas = "0000000000000800";  // SIGUSR2
constexpr const char* kNone = "0000000000000000";

// Process 7 of a /proc of its own.
class StackRequestTest : public testing::Test {
 protected:
  StackRequestTest() {
    std::string root = testing::TempDir() + "stacksXXXXXX";
    root_ = mkdtemp(root.data());
    std::filesystem::create_directories(root_ + "/proc/7");
  }
  ~StackRequestTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ + "/proc/7/" + name) << text;
  }
  struct Masks {
    const char* pending = kNone;
    const char* blocked = kNone;
    const char* ignored = kNone;
    const char* caught = kHas;
  };
  void set_status(const std::string& state, const Masks& masks) const {
    write("status", "Name:\tx\nState:\t" + state + "\nShdPnd:\t" + masks.pending + "\nSigBlk:\t" +
                        masks.blocked + "\nSigIgn:\t" + masks.ignored + "\nSigCgt:\t" +
                        masks.caught + "\n");
  }
  std::optional<std::string> before() const {
    return why_it_will_not_answer(SystemFiles(root_), 7);
  }
  std::optional<std::string> after() const { return why_it_did_not_answer(SystemFiles(root_), 7); }

  std::string root_;
};

TEST_F(StackRequestTest, WhatKeepsAProcessFromAnswering) {
  set_status("S (sleeping)", {});
  EXPECT_EQ(before(), std::nullopt);
  set_status("S (sleeping)", {.caught = kNone});
  EXPECT_THAT(before(), Optional(HasSubstr("nothing handles SIGUSR2")));
  set_status("S (sleeping)", {.ignored = kHas, .caught = kNone});
  EXPECT_THAT(before(), Optional(HasSubstr("is ignored")));
}

TEST_F(StackRequestTest, WhyAProcessDidNotAnswer) {
  set_status("S (sleeping)", {});
  EXPECT_THAT(after(), Optional(HasSubstr("handler of its own")));
  set_status("T (stopped)", {.pending = kHas});
  EXPECT_THAT(after(), Optional(HasSubstr("SIGSTOP")));
  set_status("t (tracing stop)", {.pending = kHas});
  EXPECT_THAT(after(), Optional(HasSubstr("debugger")));
  set_status("S (sleeping)", {.pending = kHas, .blocked = kHas});
  EXPECT_THAT(after(), Optional(HasSubstr("is blocked")));
  set_status("D (disk sleep)", {.pending = kHas});
  EXPECT_THAT(after(), Optional(HasSubstr("within 1 s, state D (disk sleep)")));
}

TEST_F(StackRequestTest, OneThatHasEndedNeedsNoReason) {
  set_status("Z (zombie)", {});
  EXPECT_EQ(after(), std::nullopt);
  std::filesystem::remove_all(root_ + "/proc/7");
  EXPECT_EQ(before(), std::nullopt);
  EXPECT_EQ(after(), std::nullopt);
}

TEST_F(StackRequestTest, ANoteNamesAllWithTheSameReason) {
  StackRequest request;
  for (const int rank : {0, 1, 2, 5}) EXPECT_FALSE(request.add(rank, PeerState::kAbsent, 0));
  EXPECT_FALSE(request.add(3, PeerState::kLeft, 0));
  EXPECT_TRUE(request.deadline().is_never());
  EXPECT_THAT(request.take_notes(),
              testing::UnorderedElementsAre(
                  "no stacks of PE 0-2, 5: not in the job, since shmem_init has not been called",
                  "no stacks of PE 3: not in the job any more, since shmem_finalize has been "
                  "called"));
  EXPECT_TRUE(request.take_notes().empty());
}

}  // namespace
}  // namespace memspan::launcher
