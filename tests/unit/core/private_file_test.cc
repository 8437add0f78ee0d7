// SPDX-License-Identifier: Apache-2.0
#include "core/private_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/needs.h"
#include "unit/support/private_folder.h"

namespace memspan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t kMost = 100;

class PrivateFileTest : public testing::Test {
 protected:
  std::string path(const std::string& name = "file") const { return folder_.path() + "/" + name; }
  std::string make(const std::string& bytes, mode_t mode = 0600) {
    std::ofstream(path()) << bytes;
    EXPECT_EQ(::chmod(path().c_str(), mode), 0);
    return path();
  }
  static Result<std::string> read(const std::string& path) {
    return read_private_file("the key", path, kMost);
  }
  static Result<std::string> read_public(const std::string& path) {
    return read_public_file("the certificate", path, kMost);
  }
  // kInvalidArgument with what, the path and the reason.
  static void expect_refused(const Result<std::string>& read, const std::string& path,
                             const std::string& why) {
    ASSERT_EQ(read.code(), Code::kInvalidArgument) << why;
    EXPECT_THAT(read.status().message(), AllOf(HasSubstr("the "), HasSubstr(path), HasSubstr(why)));
  }
  PrivateFolder folder_;
};

TEST_F(PrivateFileTest, ReadsTheWholeFile) {
  const std::string bytes = std::string("zero \0 and\nmore", 15);
  EXPECT_EQ(*read(make(bytes)), bytes);
  EXPECT_EQ(*read(make(bytes, 0400)), bytes);
  EXPECT_EQ(*read_public(make(bytes, 0644)), bytes);
}

TEST_F(PrivateFileTest, RefusesAModeThatLetsOthersIn) {
  for (mode_t mode : {0640U, 0620U, 0610U, 0604U, 0602U, 0601U, 0777U})
    expect_refused(read(make("x", mode)), path(), "is open to others");
  expect_refused(read(make("x", 0640)), path(), "(mode 0640)");
}

TEST_F(PrivateFileTest, RefusesAnotherUsersFile) {
  make("x");
  MEMSPAN_NEEDS("other_users");
  ASSERT_EQ(::chown(path().c_str(), 12345, 12345), 0);
  expect_refused(read(path()), path(), "belongs to another user");
  EXPECT_TRUE(read_public(path()).is_ok());
}

TEST_F(PrivateFileTest, RefusesASymbolicLinkUnlessPublic) {
  make("x");
  ASSERT_EQ(::symlink(path().c_str(), path("link").c_str()), 0);
  expect_refused(read(path("link")), path("link"), "is a symbolic link");
  EXPECT_EQ(*read_public(path("link")), "x");
}

TEST_F(PrivateFileTest, RefusesAFolder) {
  expect_refused(read(folder_.path()), folder_.path(), "is not a regular file");
  expect_refused(read_public(folder_.path()), folder_.path(), "is not a regular file");
}

// Opening a pipe that nobody writes to would wait for ever.
TEST_F(PrivateFileTest, RefusesAPipeWithoutWaiting) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  expect_refused(read(path()), path(), "is not a regular file");
  expect_refused(read_public(path()), path(), "is not a regular file");
}

TEST_F(PrivateFileTest, RefusesAnEmptyFile) {
  expect_refused(read(make("")), path(), "is empty");
  expect_refused(read_public(path()), path(), "is empty");
}

TEST_F(PrivateFileTest, TakesTheMostBytesAndNoByteMore) {
  EXPECT_TRUE(read(make(std::string(kMost, 'x'))).is_ok());
  expect_refused(read(make(std::string(kMost + 1, 'x'))), path(), "more than 100 bytes");
  expect_refused(read_public(path()), path(), "more than 100 bytes");
  // Longer than one read, and a file that never ends.
  expect_refused(read(make(std::string(100000, 'x'))), path(), "more than 100 bytes");
}

TEST_F(PrivateFileTest, RefusesAFolderThatOthersMayWriteTo) {
  make("x");
  for (mode_t mode : {0720U, 0702U, 0777U}) {
    ASSERT_EQ(::chmod(folder_.path().c_str(), mode), 0);
    expect_refused(read(path()), path(), "others may write to its folder");
  }
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  EXPECT_TRUE(read(path()).is_ok());
}

TEST_F(PrivateFileTest, TellsWhatIsNotThereFromWhatIsWrong) {
  auto missing = read(path());
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_THAT(missing.status().message(), AllOf(HasSubstr("the key"), HasSubstr(path())));
  EXPECT_EQ(read("").code(), Code::kNotFound);
  make("x");
  EXPECT_EQ(read(path() + "/below").code(), Code::kInvalidArgument);
  EXPECT_EQ(read(path() + std::string(1, '\0')).code(), Code::kInvalidArgument);
  EXPECT_EQ(read(std::string(65536, 'p')).code(), Code::kInvalidArgument);
}

TEST_F(PrivateFileTest, WritesWhatCanBeReadAndReplacesTheOld) {
  for (const char* bytes : {"first", "second"}) {
    auto file = write_private_file(path(), bytes);
    ASSERT_TRUE(file.is_ok()) << file.status().to_string();
    EXPECT_EQ(*read(path()), bytes);
    struct stat about = {};
    ASSERT_EQ(::stat(path().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 07777, 0600U);
  }
  // Nothing is left beside it.
  using Entries = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Entries(folder_.path()), Entries()), 1);
}

TEST_F(PrivateFileTest, ReplacesALinkAndNotWhatItPointsTo) {
  make("untouched");
  ASSERT_EQ(::symlink(path().c_str(), path("link").c_str()), 0);
  ASSERT_TRUE(write_private_file(path("link"), "new").is_ok());
  EXPECT_EQ(*read(path()), "untouched");
  EXPECT_EQ(*read(path("link")), "new");
}

TEST_F(PrivateFileTest, SaysWhyItCannotWrite) {
  auto file = write_private_file(path("none/file"), "x");
  EXPECT_EQ(file.code(), Code::kSystem);
  EXPECT_THAT(file.status().message(), HasSubstr(path("none/file")));
  ASSERT_EQ(::mkdir(path("folder").c_str(), 0700), 0);
  EXPECT_FALSE(write_private_file(path("folder"), "x").is_ok());
  using Entries = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Entries(folder_.path()), Entries()), 1);
}

TEST_F(PrivateFileTest, LocksWhileItsWriterLives) {
  auto writer = write_private_file(path(), "x");
  ASSERT_TRUE(writer.is_ok());
  const Fd other(::open(path().c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_NE(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
  writer->reset();
  EXPECT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
}

TEST_F(PrivateFileTest, RemovesTheAbandonedAndNothingElse) {
  auto alive = write_private_file(path("store-alive"), "x");
  ASSERT_TRUE(alive.is_ok());
  auto dead = write_private_file(path("store-dead"), "x");
  ASSERT_TRUE(dead.is_ok());
  dead->reset();
  make("x");
  ASSERT_EQ(::symlink(path().c_str(), path("store-link").c_str()), 0);
  ASSERT_EQ(::mkdir(path("store-folder").c_str(), 0700), 0);
  remove_abandoned_files(folder_.path(), "store-");
  EXPECT_TRUE(std::filesystem::exists(path("store-alive")));
  EXPECT_FALSE(std::filesystem::exists(path("store-dead")));
  EXPECT_TRUE(std::filesystem::exists(path()));
  EXPECT_TRUE(std::filesystem::is_symlink(path("store-link")));
  EXPECT_TRUE(std::filesystem::exists(path("store-folder")));
  alive->reset();
  remove_abandoned_files(folder_.path(), "store-");
  EXPECT_FALSE(std::filesystem::exists(path("store-alive")));
  remove_abandoned_files(path("none"), "store-");
}

class RuntimeDirectoryTest : public PrivateFileTest {
 protected:
  RuntimeDirectoryTest() { EXPECT_EQ(setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1), 0); }
  ~RuntimeDirectoryTest() override { unsetenv("XDG_RUNTIME_DIR"); }
};

TEST_F(RuntimeDirectoryTest, IsMadeForThisUserOnly) {
  for (int again = 0; again < 2; ++again) {
    auto made = private_runtime_directory();
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    EXPECT_EQ(*made, path("memspan"));
  }
  struct stat about = {};
  ASSERT_EQ(::stat(path("memspan").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0700U);
}

TEST_F(RuntimeDirectoryTest, RefusesOneThatOthersMayEnterOrThatIsALink) {
  ASSERT_EQ(::mkdir(path("memspan").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(path("memspan").c_str(), 0750), 0);
  EXPECT_EQ(private_runtime_directory().code(), Code::kInvalidArgument);
  ASSERT_EQ(::rmdir(path("memspan").c_str()), 0);
  ASSERT_EQ(::mkdir(path("elsewhere").c_str(), 0700), 0);
  ASSERT_EQ(::symlink(path("elsewhere").c_str(), path("memspan").c_str()), 0);
  EXPECT_EQ(private_runtime_directory().code(), Code::kInvalidArgument);
}

TEST_F(RuntimeDirectoryTest, IsElsewhereWhenTheGivenFolderIsOpenToOthers) {
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  auto made = private_runtime_directory();
  if (made.is_ok()) {
    EXPECT_FALSE(made->starts_with(folder_.path()));
  }
}

}  // namespace
}  // namespace memspan
