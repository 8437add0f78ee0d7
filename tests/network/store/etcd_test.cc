// SPDX-License-Identifier: Apache-2.0
// The store on three processes of etcd while its leader fails under load: nothing that was
// acknowledged is lost, nothing is done twice, and watchers see every change in its order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "certificates.h"
#include "store/connect.h"
#include "support/etcd_cluster.h"
#include "support/needs.h"

namespace memspan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}

class EtcdTest : public testing::Test {
 protected:
  void SetUp() override {
#ifndef MEMSPAN_TEST_HAS_ETCD
    GTEST_SKIP() << "does not apply: this build has no libmemspan_etcd.so";
#endif
    MEMSPAN_NEEDS("etcd");
  }
  static Result<std::unique_ptr<KeyValueStore>> try_to_join(const StoreAddress& address,
                                                            StoreSecurity security = {},
                                                            Deadline deadline = soon()) {
    return connect_store(
        {.endpoint = address, .security = std::move(security), .member = "a member"}, deadline);
  }
  static std::unique_ptr<KeyValueStore> join(const StoreAddress& address,
                                             StoreSecurity security = {}) {
    auto joined = try_to_join(address, std::move(security));
    EXPECT_TRUE(joined.is_ok()) << joined.status().to_string();
    return joined.is_ok() ? std::move(joined).value() : nullptr;
  }
};

// Numbers that a watcher has seen, for a thread that waits for one of them.
class Seen {
 public:
  void push(int number) {
    const std::lock_guard lock(mutex_);
    numbers_.push_back(number);
    changed_.notify_all();
  }
  std::vector<int> until(int last) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_until(lock, soon().when(),
                                    [&] { return !numbers_.empty() && numbers_.back() >= last; }))
        << "saw " << numbers_.size() << ", not " << last;
    return numbers_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> numbers_;
};

// Members that raise one counter by compare-and-swap and count in a key of their own, as fast as
// they can. No two write the same value.
class Load {
 public:
  static constexpr int kWriters = 2;
  static std::string own_key(int writer) { return "own/" + std::to_string(writer); }

  explicit Load(const StoreAddress& address) {
    for (int i = 0; i < kWriters; ++i)
      threads_.emplace_back([this, address, i] { write(address, i); });
  }
  // Until so many more writes have been acknowledged to each.
  void go_on(int count) {
    std::unique_lock lock(mutex_);
    const std::vector<int> before = written_;
    EXPECT_TRUE(changed_.wait_until(lock, soon().when(), [&] {
      for (std::size_t i = 0; i < before.size(); ++i)
        if (written_[i] < before[i] + count) return false;
      return true;
    }));
  }
  void end() {
    ends_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  // What was acknowledged: how often the counter was raised, and each writer's last own number.
  int raised() const { return raised_; }
  int written(int writer) const { return written_[static_cast<std::size_t>(writer)]; }

 private:
  void write(const StoreAddress& address, int writer) {
    auto store = connect_store({.endpoint = address, .member = "a writer"}, soon());
    ASSERT_TRUE(store.is_ok()) << store.status().to_string();
    std::string now;
    for (int count = 1; !ends_; ++count) {
      const std::string next =
          std::to_string((now.empty() ? 0 : std::stoi(now)) + 1) + " by " + std::to_string(writer);
      auto swapped = (*store)->compare_and_swap("counter", now, next, soon());
      ASSERT_TRUE(swapped.is_ok()) << swapped.status().to_string();
      // A value that this one has written before has a lower number.
      if (*swapped == next) ++raised_;
      now = *swapped;
      const Status set = (*store)->set(own_key(writer), std::to_string(count), soon());
      ASSERT_TRUE(set.is_ok()) << set.to_string();
      const std::lock_guard lock(mutex_);
      written_[static_cast<std::size_t>(writer)] = count;
      changed_.notify_all();
    }
  }

  std::atomic<bool> ends_ = false;
  std::atomic<int> raised_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> written_ = std::vector<int>(kWriters);
  std::vector<std::thread> threads_;
};

std::vector<int> up_to(int last) {
  std::vector<int> numbers;
  for (int number = 1; number <= last; ++number) numbers.push_back(number);
  return numbers;
}

enum class Fault { kKilled, kStopped, kCutOff };

class EtcdLeaderTest : public EtcdTest, public testing::WithParamInterface<Fault> {
 protected:
  void SetUp() override {
    EtcdTest::SetUp();
    if (!IsSkipped() && GetParam() == Fault::kCutOff) MEMSPAN_NEEDS("nft");
  }
};

TEST_P(EtcdLeaderTest, MayFailUnderLoad) {
  const Fault fault = GetParam();
  const auto cluster = EtcdCluster::start({.may_be_cut_off = fault == Fault::kCutOff});
  ASSERT_NE(cluster, nullptr);
  const StoreAddress address = cluster->address("load");
  auto watcher = join(address);
  Seen counter, own;
  const auto watch = [&](const std::string& key, Seen& seen) {
    auto id = watcher->watch(
        key, [&seen](const StoreChange& change) { seen.push(std::stoi(change.value)); }, soon());
    ASSERT_TRUE(id.is_ok()) << id.status().to_string();
  };
  watch("counter", counter);
  watch(Load::own_key(0), own);
  Load load(address);
  load.go_on(20);
  const int leader = cluster->leader();
  if (fault == Fault::kKilled) cluster->kill(leader);
  if (fault == Fault::kStopped) cluster->stop(leader);
  if (fault == Fault::kCutOff) cluster->cut_off(leader);
  load.go_on(20);
  // It comes back with what it had.
  if (fault == Fault::kKilled) cluster->start_again(leader);
  if (fault == Fault::kStopped) cluster->continue_(leader);
  if (fault == Fault::kCutOff) cluster->heal();
  load.go_on(20);
  load.end();
  EXPECT_THAT(*watcher->get_now("counter", soon()),
              StartsWith(std::to_string(load.raised()) + " by"));
  EXPECT_EQ(counter.until(load.raised()), up_to(load.raised()));
  EXPECT_EQ(own.until(load.written(0)), up_to(load.written(0)));
  for (int i = 0; i < Load::kWriters; ++i)
    EXPECT_EQ(*watcher->get_now(Load::own_key(i), soon()), std::to_string(load.written(i)));
}

INSTANTIATE_TEST_SUITE_P(All, EtcdLeaderTest,
                         testing::Values(Fault::kKilled, Fault::kStopped, Fault::kCutOff),
                         [](const auto& of) {
                           return std::string(of.param == Fault::kKilled    ? "Killed"
                                              : of.param == Fault::kStopped ? "Stopped"
                                                                            : "CutOff");
                         });

TEST_F(EtcdTest, AMemberThatDiesLosesItsKeysAndTheOthersSeeIt) {
  const auto cluster = EtcdCluster::start({.members = 1});
  ASSERT_NE(cluster, nullptr);
  const StoreAddress address = cluster->address("death");
  const pid_t ben = ::fork();
  if (ben == 0) {
    auto store = connect_store({.endpoint = address, .member = "ben"}, soon());
    const bool is_set = store.is_ok() && (*store)->get("go", soon()).is_ok() &&
                        (*store)->set("ben", "here", soon(), KeyLife::kLease).is_ok();
    ::_exit(is_set ? 0 : 1);
  }
  auto anna = join(address);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<StoreEvent> seen;
  const auto watch = anna->watch(
      "ben",
      [&](const StoreChange& change) {
        const std::lock_guard lock(mutex);
        seen.push_back(change.event);
        changed.notify_all();
      },
      soon());
  ASSERT_TRUE(watch.is_ok());
  ASSERT_TRUE(anna->set("go", "", soon()).is_ok());
  int status = -1;
  EXPECT_EQ(::waitpid(ben, &status, 0), ben);
  EXPECT_EQ(status, 0);
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_until(lock, soon().when(), [&] { return seen.size() == 2; }));
  EXPECT_THAT(seen, ElementsAre(StoreEvent::kSet, StoreEvent::kRemoved));
}

TEST_F(EtcdTest, AWatchGoesOnBehindACompaction) {
  const auto cluster = EtcdCluster::start({.members = 1});
  ASSERT_NE(cluster, nullptr);
  const StoreAddress address = cluster->address("compaction");
  auto anna = join(address);
  auto ben = join(address);
  ASSERT_TRUE(ben->set("w/old", "1", soon()).is_ok());
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> seen;
  const auto until = [&](const std::string& last) {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_until(lock, soon().when(), [&] {
      return !seen.empty() && seen.back() == last;
    })) << testing::PrintToString(seen);
  };
  ASSERT_TRUE(anna->watch(
                      "w/",
                      [&](const StoreChange& change) {
                        const std::lock_guard lock(mutex);
                        seen.push_back(change.key + "=" + change.value);
                        changed.notify_all();
                      },
                      soon())
                  .is_ok());
  ASSERT_TRUE(ben->set("w/new", "2", soon()).is_ok());
  until("w/new=2");
  // Nothing that concerns the watch, so that it stays where it is, and then all of it is compacted.
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(ben->set("other", std::to_string(i), soon()).is_ok());
  const std::string answer = cluster->post(0, "/v3/kv/range", R"({"key":"AA=="})");
  const std::string begin = R"("revision":")";
  const std::string revision = answer.substr(answer.find(begin) + begin.size());
  static_cast<void>(cluster->post(
      0, "/v3/kv/compaction",
      R"({"physical":true,"revision":")" + revision.substr(0, revision.find('"')) + R"("})"));
  // The stream ends with its server, and has to begin again behind the compaction.
  cluster->kill(0);
  cluster->start_again(0);
  ASSERT_GE(cluster->leader(), 0);
  EXPECT_TRUE(*ben->remove("w/old", soon()));
  until("w/old=");
  ASSERT_TRUE(ben->set("w/new", "3", soon()).is_ok());
  until("w/new=3");
  const std::lock_guard lock(mutex);
  EXPECT_THAT(seen, ElementsAre("w/new=2", "w/old=", "w/new=3"));
}

TEST_F(EtcdTest, SaysWhoDoesNotAnswer) {
  const auto nobody = StoreAddress::parse("etcd://127.0.0.1:1,127.0.0.1:2/prefix").value();
  const auto joined = try_to_join(nobody, {}, Deadline::after(std::chrono::milliseconds(300)));
  EXPECT_EQ(joined.code(), Code::kTimeout);
  EXPECT_THAT(joined.status().message(), HasSubstr(nobody.to_string()));
  EXPECT_THAT(joined.status().message(), HasSubstr("127.0.0.1:"));
}

TEST_F(EtcdTest, SaysThatAPortIsNotForClients) {
  const auto cluster = EtcdCluster::start({.members = 1});
  ASSERT_NE(cluster, nullptr);
  StoreAddress address = cluster->address("wrong");
  address.endpoints = {cluster->peer(0)};
  const auto joined = try_to_join(address);
  EXPECT_EQ(joined.code(), Code::kInternal);
  EXPECT_THAT(joined.status().message(), HasSubstr("status 404 that is not etcd's"));
  EXPECT_THAT(joined.status().message(), HasSubstr("not-etcd"));
}

TEST_F(EtcdTest, ACallDuringAnOutageEndsAtItsDeadlineAndLaterOnesGoOn) {
  const auto cluster = EtcdCluster::start({.members = 1});
  ASSERT_NE(cluster, nullptr);
  auto anna = join(cluster->address("outage"));
  cluster->kill(0);
  const auto late = anna->set("k", "v", Deadline::after(std::chrono::milliseconds(200)));
  EXPECT_EQ(late.code(), Code::kTimeout);
  cluster->start_again(0);
  EXPECT_TRUE(anna->set("k", "w", soon()).is_ok());
  EXPECT_EQ(*anna->get_now("k", soon()), "w");
}

// An address of this host that is not a loopback one is as good as another host's.
TEST_F(EtcdTest, IsNotUsedInThePlainOnANetwork) {
  MEMSPAN_NEEDS("nft");
  const auto cluster =
      EtcdCluster::start({.members = 1, .host = "192.0.2.1", .may_be_cut_off = true});
  ASSERT_NE(cluster, nullptr);
  const StoreAddress address = cluster->address("plain");
  const auto refused = try_to_join(address);
  EXPECT_EQ(refused.code(), Code::kAuth);
  EXPECT_THAT(refused.status().message(), HasSubstr("192.0.2.1"));
  EXPECT_THAT(refused.status().message(), HasSubstr("MEMSPAN_TRUSTED_FABRIC"));
  EXPECT_THAT(refused.status().message(), HasSubstr("shmem_set_conf_store_tls"));
  EXPECT_TRUE(try_to_join(address, {.kind = StoreSecurity::Kind::kPlain}).is_ok());
  ::setenv("MEMSPAN_TRUSTED_FABRIC", "192.0.2.0/24", 1);
  EXPECT_TRUE(try_to_join(address).is_ok());
  ::unsetenv("MEMSPAN_TRUSTED_FABRIC");
}

TEST_F(EtcdTest, TakesCertificates) {
  TestFolder folder;
  const Issued authority = issue({.common_name = "authority", .is_authority = true});
  const Issued server = issue({}, &authority), client = issue({}, &authority);
  const Issued stranger = issue({.common_name = "another", .is_authority = true});
  const std::string ca = folder.write(to_pem(authority));
  const auto cluster = EtcdCluster::start(
      {.members = 1,
       .flags = {"--cert-file", folder.write(to_pem(server)), "--key-file",
                 folder.write(key_to_pem(server)), "--trusted-ca-file", ca, "--client-cert-auth"},
       .has_tls = true});
  ASSERT_NE(cluster, nullptr);
  StoreSecurity security{.kind = StoreSecurity::Kind::kCertificates};
  security.certificates.authorities = {ca};
  security.certificates.certificate = folder.write(to_pem(client));
  security.certificates.key.path = folder.write(key_to_pem(client));
  const StoreAddress address = cluster->address("tls");
  auto anna = join(address, security);
  ASSERT_NE(anna, nullptr);
  ASSERT_TRUE(anna->set("k", "v", soon()).is_ok());
  EXPECT_EQ(*anna->get("k", soon()), "v");
  // Of an authority that this process does not trust, or without one.
  const Issued other = issue({}, &stranger);
  security.certificates.authorities = {folder.write(to_pem(stranger))};
  security.certificates.certificate = folder.write(to_pem(other));
  security.certificates.key.path = folder.write(key_to_pem(other));
  EXPECT_EQ(try_to_join(address, security).code(), Code::kAuth);
  EXPECT_EQ(try_to_join(address, {}, Deadline::after(std::chrono::milliseconds(500))).code(),
            Code::kTimeout);
  security.certificates.key.path = "/nonexistent";
  EXPECT_NE(try_to_join(address, security).code(), Code::kOk);
}

TEST_F(EtcdTest, GivesAPassword) {
  const auto cluster = EtcdCluster::start({.members = 1});
  ASSERT_NE(cluster, nullptr);
  const auto tell = [&](const char* path, const char* body) {
    EXPECT_THAT(cluster->post(0, path, body), HasSubstr("header")) << path;
  };
  tell("/v3/auth/user/add", R"({"name":"root","password":"open sesame"})");
  tell("/v3/auth/role/add", R"({"name":"root"})");
  tell("/v3/auth/user/grant", R"({"user":"root","role":"root"})");
  tell("/v3/auth/enable", "{}");
  StoreAddress address = cluster->address("password");
  EXPECT_EQ(try_to_join(address).code(), Code::kAuth);
  TestFolder folder;
  const std::string file = folder.write("open sesame\n"), wrong = folder.write("open, please");
  address.user = "root";
  EXPECT_EQ(try_to_join(address).code(), Code::kInvalidArgument);
  ::setenv("MEMSPAN_ETCD_PASSWORD_FILE", wrong.c_str(), 1);
  EXPECT_EQ(try_to_join(address).code(), Code::kAuth);
  ::setenv("MEMSPAN_ETCD_PASSWORD_FILE", file.c_str(), 1);
  auto anna = join(address);
  EXPECT_EQ(try_to_join(cluster->address("password")).code(), Code::kInvalidArgument);
  ::unsetenv("MEMSPAN_ETCD_PASSWORD_FILE");
  ASSERT_NE(anna, nullptr);
  EXPECT_TRUE(anna->set("k", "v", soon()).is_ok());
  // A server that was started again knows no tokens of before.
  cluster->kill(0);
  cluster->start_again(0);
  EXPECT_TRUE(anna->set("k", "w", soon()).is_ok());
}

}  // namespace
}  // namespace memspan
