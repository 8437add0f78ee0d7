// SPDX-License-Identifier: Apache-2.0
#include "device/pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

}  // namespace
}  // namespace memspan
