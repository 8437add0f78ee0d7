// SPDX-License-Identifier: Apache-2.0
#include "core/pages.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <thread>

#include "device/reservation.h"
#include "support/forbidden_syscalls.h"
#include "support/needs.h"

namespace memspan {
namespace {

std::size_t taken_bytes(const Pages& pages) {
  struct stat info {};
  EXPECT_EQ(fstat(pages.descriptor(), &info), 0);
  return static_cast<std::size_t>(info.st_blocks) * 512;
}

TEST(PagesTest, AreReservedButNotTaken) {
  Pages pages = Pages::create(std::size_t{1} << 40, "test").value();
  EXPECT_EQ(pages.bytes(), std::size_t{1} << 40);
  EXPECT_EQ(taken_bytes(pages), 0u);
}

TEST(PagesTest, ARefusedMemfdIsNamed) {
  MEMSPAN_NEEDS("seccomp");
  std::thread([] {
    constexpr long kMemfd = SYS_memfd_create;
    ASSERT_EQ(forbid_syscalls(&kMemfd, 1, EPERM), 0);
    const auto pages = Pages::create(page_size(), "test");
    EXPECT_EQ(pages.code(), Code::kSystem);
    EXPECT_THAT(pages.status().message(), testing::HasSubstr("refuses memfd_create"));
    EXPECT_THAT(pages.status().message(), testing::HasSubstr("seccomp profile"));
  }).join();
}

TEST(PagesTest, CommitTakesJustTheRange) {
  Pages pages = Pages::create(1 << 30, "test").value();
  ASSERT_TRUE(pages.commit(8 * page_size(), 4 * page_size()).is_ok());
  EXPECT_GE(taken_bytes(pages), 4 * page_size());
  EXPECT_LT(taken_bytes(pages), 64 * page_size());
}

TEST(PagesTest, CommitOutsideIsRefused) {
  Pages pages = Pages::create(4 * page_size(), "test").value();
  EXPECT_EQ(pages.commit(4 * page_size(), 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(pages.commit(0, SIZE_MAX).code(), Code::kInvalidArgument);
  EXPECT_TRUE(pages.commit(4 * page_size(), 0).is_ok());
}

TEST(PagesTest, NobodyCanResizeThem) {
  Pages pages = Pages::create(page_size(), "test").value();
  EXPECT_NE(ftruncate(pages.descriptor(), 0), 0);
  EXPECT_NE(ftruncate(pages.descriptor(), 1 << 20), 0);
}

TEST(PagesTest, AdoptTakesOnlySealedMemory) {
  Pages pages = Pages::create(page_size(), "test").value();
  EXPECT_EQ(Pages::adopt(Fd(dup(pages.descriptor())))->bytes(), page_size());
  EXPECT_EQ(Pages::adopt(Fd(memfd_create("loose", MFD_ALLOW_SEALING))).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Pages::adopt(Fd(open("/dev/null", O_RDWR))).code(), Code::kSystem);
}

std::size_t free_huge_pages() {
  std::ifstream file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  std::size_t pages = 0;
  file >> pages;
  return pages;
}

// Whichever of the two this machine has: pages set aside, or none.
TEST(PagesTest, HugeOnesAreTakenAtOnceOrNotAtAll) {
  auto pages = Pages::create_huge(kHugePage + 1, "pages-test");
  if (!pages.is_ok()) {
    EXPECT_EQ(pages.code(), Code::kUnavailable) << pages.status().to_string();
    EXPECT_LT(free_huge_pages(), 2u);
    return;
  }
  EXPECT_EQ(pages->bytes(), 2 * kHugePage);
  auto range = Reservation::make(4 * kHugePage, nullptr);
  ASSERT_TRUE(range.is_ok());
  const std::size_t at = kHugePage - reinterpret_cast<std::uint64_t>(range->base()) % kHugePage;
  ASSERT_TRUE(range->map(at, *pages, 0, pages->bytes()).is_ok());
  range->base()[at] = std::byte{5};
  range->base()[at + 2 * kHugePage - 1] = std::byte{6};
  auto again = Pages::adopt(std::move(pages->duplicate()).value());
  ASSERT_TRUE(again.is_ok()) << again.status().to_string();
  EXPECT_EQ(again->bytes(), 2 * kHugePage);
  EXPECT_TRUE(range->unmap(at, 2 * kHugePage).is_ok());
}

TEST(PagesTest, AdoptsWhatOthersMadeAndGrowsIt) {
  Fd descriptor(memfd_create("pages-test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(descriptor.get(), 100), 0);
  auto pages = Pages::adopt_unsealed(Fd(dup(descriptor.get())), 5000);
  ASSERT_TRUE(pages.is_ok());
  EXPECT_GE(pages->bytes(), 5000u);
  auto same = Pages::adopt_unsealed(Fd(dup(descriptor.get())), 10);
  ASSERT_TRUE(same.is_ok());
  EXPECT_EQ(same->bytes(), pages->bytes());
  EXPECT_EQ(Pages::adopt(Fd(dup(descriptor.get()))).code(), Code::kInvalidArgument);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Fd reading(ends[0]), writing(ends[1]);
  EXPECT_EQ(Pages::adopt_unsealed(std::move(reading), 10).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace memspan
