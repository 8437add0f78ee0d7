// SPDX-License-Identifier: Apache-2.0
#include "store/host_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/private_file.h"
#include "support/must.h"
#include "support/needs.h"
#include "unit/support/private_folder.h"

namespace memspan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

const Endpoint kHere{"127.0.0.1", 4711};

// The runtime folder is the test's own.
class HostSecretTest : public testing::Test {
 protected:
  HostSecretTest() { EXPECT_EQ(setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1), 0); }
  ~HostSecretTest() override { unsetenv("XDG_RUNTIME_DIR"); }
  static HostSecret publish(const Endpoint& endpoint) {
    return must(HostSecret::publish(endpoint));
  }
  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/memspan"))
      paths.push_back(entry.path().string());
    return paths;
  }
  PrivateFolder folder_;
};

TEST_F(HostSecretTest, WhoConnectsReadsWhatWhoListensPublished) {
  const HostSecret secret = publish(kHere);
  EXPECT_THAT(secret.secret(), SizeIs(64));
  EXPECT_EQ(*read_host_secret(kHere), secret.secret());
}

TEST_F(HostSecretTest, OnlyThisUserMayReadIt) {
  const HostSecret secret = publish(kHere);
  ASSERT_THAT(files(), SizeIs(1));
  struct stat about = {};
  ASSERT_EQ(::stat(files()[0].c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0600U);
  ASSERT_EQ(::stat((folder_.path() + "/memspan").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0700U);
}

TEST_F(HostSecretTest, GoesWithWhoPublishedIt) {
  {
    HostSecret secret = publish(kHere);
    const HostSecret moved = std::move(secret);
    EXPECT_EQ(*read_host_secret(kHere), moved.secret());
  }
  auto secret = read_host_secret(kHere);
  EXPECT_EQ(secret.code(), Code::kNotFound);
  EXPECT_THAT(secret.status().message(), AllOf(HasSubstr("127.0.0.1-4711"), HasSubstr("memspan")));
  EXPECT_THAT(files(), SizeIs(0));
}

TEST_F(HostSecretTest, NoSecretComesTwice) {
  const std::string first = publish(kHere).secret();
  EXPECT_NE(publish(kHere).secret(), first);
}

TEST_F(HostSecretTest, EndpointsHaveTheirOwn) {
  const HostSecret one = publish(kHere);
  const HostSecret two = publish({"127.0.0.1", 4712});
  const HostSecret three = publish({"::1", 4711});
  EXPECT_EQ(*read_host_secret(kHere), one.secret());
  EXPECT_EQ(*read_host_secret({"127.0.0.1", 4712}), two.secret());
  EXPECT_EQ(*read_host_secret({"::1", 4711}), three.secret());
}

TEST_F(HostSecretTest, AllAddressesStandForEveryOne) {
  const HostSecret all = publish({"0.0.0.0", 4711});
  EXPECT_EQ(*read_host_secret(kHere), all.secret());
  EXPECT_EQ(read_host_secret({"127.0.0.1", 1}).code(), Code::kNotFound);
  const HostSecret all_v6 = publish({"::", 4713});
  EXPECT_EQ(*read_host_secret({"::1", 4713}), all_v6.secret());
  EXPECT_EQ(*read_host_secret({"127.0.0.1", 4713}), all_v6.secret());
}

TEST_F(HostSecretTest, TheNextStoreRemovesWhatAKilledOneLeft) {
  {
    const HostSecret killed = publish(kHere);
    const std::string path = files().at(0);
    const std::string left = folder_.path() + "/memspan/store-0-left.secret";
    std::filesystem::copy_file(path, left);  // without its writer's lock
  }
  EXPECT_THAT(files(), SizeIs(1));
  const HostSecret next = publish({"127.0.0.1", 4712});
  EXPECT_THAT(files(), SizeIs(1));
  EXPECT_EQ(*read_host_secret({"127.0.0.1", 4712}), next.secret());
}

TEST_F(HostSecretTest, AStoreThatLivesKeepsItsSecretWhenAnotherPublishes) {
  const HostSecret first = publish(kHere);
  const HostSecret second = publish({"127.0.0.1", 4712});
  EXPECT_EQ(*read_host_secret(kHere), first.secret());
}

TEST_F(HostSecretTest, IsNotReadWhenOthersMay) {
  const HostSecret secret = publish(kHere);
  ASSERT_EQ(::chmod(files().at(0).c_str(), 0644), 0);
  EXPECT_EQ(read_host_secret(kHere).code(), Code::kInvalidArgument);
}

TEST_F(HostSecretTest, IsNotPublishedInAFolderOfOthers) {
  ASSERT_EQ(::mkdir((folder_.path() + "/memspan").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((folder_.path() + "/memspan").c_str(), 0755), 0);
  auto secret = HostSecret::publish(kHere);
  EXPECT_EQ(secret.code(), Code::kInvalidArgument);
  EXPECT_THAT(secret.status().message(), HasSubstr("memspan"));
}

// Somebody who is this user in a machine where nobody gave it a runtime folder; root plays the
// other users, who were in /tmp first.
class SquattedTest : public testing::Test {
 protected:
  void SetUp() override {
    MEMSPAN_NEEDS("other_users");
    ::unsetenv("XDG_RUNTIME_DIR");
    user_ = 0x40000000U + static_cast<uid_t>(::getpid());
    usual_ = "/tmp/memspan-" + std::to_string(user_);
  }
  void TearDown() override {
    if (user_ == 0) return;
    ASSERT_EQ(::seteuid(0), 0);
    std::error_code ignored;
    std::filesystem::remove_all(usual_, ignored);
    for (const std::string& folder : fallbacks()) std::filesystem::remove_all(folder, ignored);
  }
  void become_user() const { ASSERT_EQ(::seteuid(user_), 0); }
  std::vector<std::string> fallbacks() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator("/tmp"))
      if (entry.path().string().starts_with(usual_ + ".")) paths.push_back(entry.path().string());
    return paths;
  }
  void expect_that_both_sides_meet() {
    become_user();
    {
      const auto store = HostSecret::publish(kHere);
      ASSERT_TRUE(store.is_ok()) << store.status().to_string();
      const auto read = read_host_secret(kHere);
      ASSERT_TRUE(read.is_ok()) << read.status().to_string();
      EXPECT_EQ(*read, store->secret());
      const auto second = HostSecret::publish({"127.0.0.1", 4712});
      ASSERT_TRUE(second.is_ok()) << second.status().to_string();
      EXPECT_EQ(*read_host_secret({"127.0.0.1", 4712}), second->secret());
    }
    EXPECT_EQ(read_host_secret(kHere).code(), Code::kNotFound);
    EXPECT_THAT(fallbacks(), SizeIs(1));
    struct stat about = {};
    ASSERT_EQ(::lstat(fallbacks().front().c_str(), &about), 0);
    EXPECT_EQ(about.st_uid, user_);
    EXPECT_EQ(about.st_mode & 07777, 0700U);
  }

  uid_t user_ = 0;
  std::string usual_;
};

TEST_F(SquattedTest, AFolderOfAnotherUserIsNotUsed) {
  ASSERT_EQ(::mkdir(usual_.c_str(), 0700), 0);
  expect_that_both_sides_meet();
}

TEST_F(SquattedTest, AFolderThatIsOpenToAllIsNotUsed) {
  ASSERT_EQ(::mkdir(usual_.c_str(), 0777), 0);
  ASSERT_EQ(::chmod(usual_.c_str(), 0777), 0);
  expect_that_both_sides_meet();
}

TEST_F(SquattedTest, AFileIsNotUsed) {
  ASSERT_EQ(::mknod(usual_.c_str(), S_IFREG | 0666, 0), 0);
  expect_that_both_sides_meet();
}

// Not even one to a folder of this user.
TEST_F(SquattedTest, ALinkIsNotFollowed) {
  const PrivateFolder folder;
  ASSERT_EQ(::chown(folder.path().c_str(), user_, user_), 0);
  ASSERT_EQ(::symlink(folder.path().c_str(), usual_.c_str()), 0);
  expect_that_both_sides_meet();
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Others cannot know the name, but they may make as many of that kind as they like.
TEST_F(SquattedTest, WhatOthersPutBesideItIsNotUsed) {
  ASSERT_EQ(::mkdir(usual_.c_str(), 0700), 0);
  ASSERT_EQ(::mkdir((usual_ + ".000000").c_str(), 0700), 0);
  ASSERT_EQ(::symlink("/tmp", (usual_ + ".000001").c_str()), 0);
  become_user();
  const auto store = HostSecret::publish(kHere);
  ASSERT_TRUE(store.is_ok()) << store.status().to_string();
  EXPECT_EQ(*read_host_secret(kHere), store->secret());
}

// Who squats may go while a store lives, and the folder of the usual name be there again.
TEST_F(SquattedTest, AStoreIsFoundWhenTheSquatterHasGone) {
  ASSERT_EQ(::mkdir(usual_.c_str(), 0700), 0);
  become_user();
  const auto store = HostSecret::publish(kHere);
  ASSERT_TRUE(store.is_ok()) << store.status().to_string();
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_EQ(::rmdir(usual_.c_str()), 0);
  become_user();
  const auto next = HostSecret::publish({"127.0.0.1", 4712});
  ASSERT_TRUE(next.is_ok()) << next.status().to_string();
  EXPECT_EQ(*read_host_secret(kHere), store->secret());
  EXPECT_EQ(*read_host_secret({"127.0.0.1", 4712}), next->secret());
}

}  // namespace
}  // namespace memspan
