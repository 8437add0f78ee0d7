// SPDX-License-Identifier: Apache-2.0
#include "stores.h"

#include <thread>
#include <utility>
#include <vector>

#include "store/client.h"
#include "store/connect.h"
#include "store/reconnecting_store.h"
#include "store/server.h"
#include "support/etcd_cluster.h"
#include "support/memory_store.h"
#include "support/must.h"
#include "support/needs.h"
#ifdef MEMSPAN_TEST_HAS_ETCD
#include "store/etcd/etcd_messages.h"
#endif

namespace memspan::contract {
namespace {

StoreSecurity plain() {
  return {.kind = StoreSecurity::Kind::kPlain};
}

class ServedStore final : public StoreUnderTest {
 public:
  explicit ServedStore(StoreKind kind) : kind_(kind) {
    server_ = must(StoreServer::listen({"127.0.0.1", 0}, {.security = plain()}));
  }
  std::unique_ptr<KeyValueStore> join(const std::string& member) override {
    auto client = must(StoreClient::connect(
        {.endpoint = server_->endpoint(), .security = plain(), .member = member}, soon()));
    if (kind_ == StoreKind::kServer) return client;
    return reconnecting(std::move(client));
  }

 private:
  static std::unique_ptr<KeyValueStore> reconnecting(std::unique_ptr<KeyValueStore> first) {
    const auto connect = [](Deadline) {
      return Result<std::unique_ptr<KeyValueStore>>(Status(Code::kUnavailable, "never again"));
    };
    return must(
        ReconnectingStore::start(std::move(first), {.connect = connect, .where = "the test's"}));
  }
  const StoreKind kind_;
  std::unique_ptr<StoreServer> server_;
};

class StoreInMemory final : public StoreUnderTest {
 public:
  std::unique_ptr<KeyValueStore> join(const std::string& member) override {
    return store_.join(member);
  }

 private:
  MemoryStore store_;
};

#ifdef MEMSPAN_TEST_HAS_ETCD
// One cluster serves all tests of the program, each under a prefix of its own. The store ends when
// etcd ends the leases of all its members.
class StoreOnEtcd final : public StoreUnderTest {
 public:
  // Here, since the processes of etcd end with the thread that started them.
  StoreOnEtcd() { static_cast<void>(cluster()); }
  std::unique_ptr<KeyValueStore> join(const std::string& member) override {
    return must(connect_store({.endpoint = cluster().address(prefix_), .member = member}, soon()));
  }
  ~StoreOnEtcd() override {
    const std::string sessions = prefix_ + "/session/";
    const auto found = etcd::read_range(cluster().post(
        0, "/v3/kv/range", etcd::range_request(sessions, etcd::end_of_prefix(sessions))));
    EXPECT_TRUE(found.is_ok()) << found.status().to_string();
    for (const auto& key : found->keys)
      static_cast<void>(cluster().post(0, "/v3/lease/revoke", etcd::lease_request(key.lease)));
  }

 private:
  static EtcdCluster& cluster() {
    static const std::unique_ptr<EtcdCluster> cluster = EtcdCluster::start();
    return *cluster;
  }
  static int next() {
    static int last = 0;
    return ++last;
  }
  const std::string prefix_ = "test" + std::to_string(next());
};
#endif

}  // namespace

std::string name_of(const testing::TestParamInfo<StoreKind>& of) {
  switch (of.param) {
    case StoreKind::kServer:
      return "Server";
    case StoreKind::kReconnecting:
      return "Reconnecting";
    case StoreKind::kMemory:
      return "Memory";
    case StoreKind::kEtcd:
      return "Etcd";
  }
  return "none";
}

std::string StoreUnderTest::why_not(StoreKind kind) {
  if (kind != StoreKind::kEtcd) return {};
#ifdef MEMSPAN_TEST_HAS_ETCD
  return why_no_etcd();
#else
  return "this build has no libmemspan_etcd.so";
#endif
}

void StoreTest::SetUp() {
  if (GetParam() == StoreKind::kEtcd) MEMSPAN_NEEDS("etcd");
  if (store_ == nullptr) GTEST_SKIP() << "does not apply: " << StoreUnderTest::why_not(GetParam());
}

std::unique_ptr<StoreUnderTest> StoreUnderTest::start(StoreKind kind) {
  if (!why_not(kind).empty()) return nullptr;
#ifdef MEMSPAN_TEST_HAS_ETCD
  if (kind == StoreKind::kEtcd) return std::make_unique<StoreOnEtcd>();
#endif
  if (kind == StoreKind::kMemory) return std::make_unique<StoreInMemory>();
  return std::make_unique<ServedStore>(kind);
}

void StoreTest::run_members(int size, const std::function<void(KeyValueStore&, int)>& run) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      auto member = join("PE " + std::to_string(rank));
      run(*member, rank);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace memspan::contract
