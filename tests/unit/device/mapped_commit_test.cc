// SPDX-License-Identifier: Apache-2.0
#include "device/mapped_commit.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <thread>

#include "device/reservation.h"
#include "support/forbidden_syscalls.h"
#include "support/huge_pages.h"
#include "support/needs.h"

namespace memspan {
namespace {

// Of a file, at the same place of a huge page.
class MappedCommitTest : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 40 * kHugePage;

  MappedCommitTest()
      : pages_(Pages::create(kBytes, "commit-test").value()),
        range_(Reservation::make(kBytes, nullptr).value()) {
    EXPECT_TRUE(range_.map(0, pages_, 0, kBytes).is_ok());
  }
  MappedPart part(std::size_t begin, std::size_t bytes) const {
    return {pages_, begin, range_.base() + begin, bytes};
  }
  std::size_t taken() const {
    struct stat info {};
    EXPECT_EQ(fstat(pages_.descriptor(), &info), 0);
    return static_cast<std::size_t>(info.st_blocks) * 512;
  }
  Pages pages_;
  Reservation range_;
};

TEST_F(MappedCommitTest, ReservationsThatMayHaveHugePagesAreAligned) {
  for (int i = 0; i < 5; ++i) {
    const auto range = Reservation::make(kHugePage + page_size(), nullptr);
    ASSERT_TRUE(range.is_ok());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(range->base()) % kHugePage, 0u);
  }
}

// Pages before and behind whole huge ones are taken one by one, whatever the way.
TEST_F(MappedCommitTest, TakesJustTheRange) {
  const std::size_t begin = kHugePage - 3 * page_size(), bytes = 2 * kHugePage;
  ASSERT_TRUE(commit_mapped(part(begin, bytes)).is_ok());
  EXPECT_GE(taken(), bytes);
  EXPECT_LT(taken(), bytes + 64 * page_size());
  EXPECT_EQ(range_.base()[begin], std::byte{0});
  EXPECT_EQ(range_.base()[begin + bytes - 1], std::byte{0});
}

TEST_F(MappedCommitTest, WhatIsThereStays) {
  for (std::size_t at = 0; at < kBytes; at += kHugePage / 2) range_.base()[at + 7] = std::byte{9};
  ASSERT_TRUE(commit_mapped(part(0, kBytes)).is_ok());
  for (std::size_t at = 0; at < kBytes; at += kHugePage / 2)
    ASSERT_EQ(range_.base()[at + 7], std::byte{9}) << at;
  EXPECT_EQ(range_.base()[kBytes - 1], std::byte{0});
  EXPECT_EQ(taken(), kBytes);
}

TEST_F(MappedCommitTest, WholeHugePagesAreHugeHereAndAtAPeer) {
  ASSERT_TRUE(commit_mapped(part(0, kBytes)).is_ok());
  MEMSPAN_NEEDS("huge_pages");
  EXPECT_EQ(smaps_bytes(range_.base(), "ShmemPmdMapped"), kBytes);
  // As a peer has it: another mapping, in which nobody advised anything.
  Reservation peer = Reservation::make(kBytes, nullptr).value();
  ASSERT_TRUE(peer.map(0, pages_, 0, kBytes).is_ok());
  for (std::size_t at = 0; at < kBytes; at += kHugePage) peer.base()[at] = std::byte{1};
  EXPECT_EQ(smaps_bytes(peer.base(), "ShmemPmdMapped"), kBytes);
}

TEST_F(MappedCommitTest, AProcessMayDoWithoutHugePages) {
  if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
    GTEST_SKIP() << "does not apply: the kernel cannot turn huge pages off for a process";
  const Status status = commit_mapped(part(0, kBytes));
  range_.base()[0] = std::byte{1};
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
  ASSERT_TRUE(status.is_ok()) << status.to_string();
  EXPECT_EQ(taken(), kBytes);
  if (huge_page_way() == HugePageWay::kAdvice) return;  // the kernel may always give huge ones
  EXPECT_EQ(smaps_bytes(range_.base(), "ShmemPmdMapped"), 0u);
}

// A mapping that does not fit its file's huge pages gets small ones.
TEST_F(MappedCommitTest, AddressesThatDoNotAgreeAreNoError) {
  Reservation odd = Reservation::make(4 * kHugePage, nullptr).value();
  ASSERT_TRUE(odd.map(0, pages_, page_size(), 4 * kHugePage).is_ok());
  ASSERT_TRUE(commit_mapped({pages_, page_size(), odd.base(), 4 * kHugePage}).is_ok());
  EXPECT_EQ(taken(), 4 * kHugePage);
}

// As a container may refuse it: the pages are taken, and mapped at the first touch.
TEST_F(MappedCommitTest, ARefusedAdviceIsNoError) {
  MEMSPAN_NEEDS("seccomp");
  for (const int error : {EPERM, ENOSYS})
    std::thread([&] {
      constexpr long kMadvise = SYS_madvise;
      ASSERT_EQ(forbid_syscalls(&kMadvise, 1, error), 0);
      const Status status = commit_mapped(part(0, kBytes));
      EXPECT_TRUE(status.is_ok()) << status.to_string();
    }).join();
  EXPECT_EQ(taken(), kBytes);
}

TEST_F(MappedCommitTest, AnObjectionEndsIt) {
  std::atomic<int> asked{0};
  const Status status = commit_mapped(part(0, kBytes), [&](std::size_t bytes) -> Status {
    EXPECT_LE(bytes, kCommitPiece);
    ++asked;
    return {Code::kOutOfMemory, "enough"};
  });
  EXPECT_EQ(status.code(), Code::kOutOfMemory);
  EXPECT_EQ(status.message(), "enough");
  EXPECT_EQ(taken(), 0u);
  EXPECT_LE(asked.load(), static_cast<int>(kMostCommitThreads));
}

TEST_F(MappedCommitTest, PiecesAreAskedForOnceEach) {
  std::atomic<std::size_t> asked{0};
  const auto count = [&](std::size_t bytes) {
    asked += bytes;
    return Status::ok();
  };
  ASSERT_TRUE(commit_mapped(part(page_size(), kBytes - 2 * page_size()), count).is_ok());
  EXPECT_EQ(asked.load(), kBytes - 2 * page_size());
  EXPECT_TRUE(commit_mapped(part(0, 0), count).is_ok());
  EXPECT_EQ(asked.load(), kBytes - 2 * page_size());
}

TEST_F(MappedCommitTest, OutsideThePagesIsRefused) {
  EXPECT_EQ(commit_mapped({pages_, kBytes, range_.base(), kBytes}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace memspan
