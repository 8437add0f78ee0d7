// SPDX-License-Identifier: Apache-2.0
#include "stores.h"

#include <thread>
#include <utility>
#include <vector>

#include "store/client.h"
#include "store/memory_store.h"
#include "store/server.h"

namespace memspan::contract {
namespace {

StoreSecurity plain() {
  return {.kind = StoreSecurity::Kind::kPlain};
}

// A member of whom recipes see the plain verbs only.
class VerbsOnly final : public KeyValueStore {
 public:
  explicit VerbsOnly(std::unique_ptr<KeyValueStore> store) : store_(std::move(store)) {}
  Status set(std::string_view key, std::string_view value, Deadline deadline,
             KeyLife life) override {
    return store_->set(key, value, deadline, life);
  }
  Result<std::string> get(std::string_view key, Deadline deadline) override {
    return store_->get(key, deadline);
  }
  Result<std::string> get_now(std::string_view key, Deadline deadline) override {
    return store_->get_now(key, deadline);
  }
  Result<std::string> compare_and_swap(std::string_view key, std::string_view expected,
                                       std::string_view desired, Deadline deadline,
                                       KeyLife life) override {
    return store_->compare_and_swap(key, expected, desired, deadline, life);
  }
  Result<bool> remove(std::string_view key, Deadline deadline) override {
    return store_->remove(key, deadline);
  }
  Result<StoreListing> list(std::string_view prefix, Deadline deadline) override {
    return store_->list(prefix, deadline);
  }
  Result<std::uint64_t> watch(std::string_view prefix, StoreWatcher watcher,
                              Deadline deadline) override {
    return store_->watch(prefix, std::move(watcher), deadline);
  }
  Status unwatch(std::uint64_t watch, Deadline deadline) override {
    return store_->unwatch(watch, deadline);
  }
  void end() override { store_->end(); }
  std::uint64_t lease() const override { return store_->lease(); }
  const std::string& member() const override { return store_->member(); }

 private:
  const std::unique_ptr<KeyValueStore> store_;
};

class ServedStore final : public StoreUnderTest {
 public:
  explicit ServedStore(bool has_collectives) : has_collectives_(has_collectives) {
    auto server = StoreServer::listen({"127.0.0.1", 0}, {.security = plain()});
    EXPECT_TRUE(server.is_ok()) << server.status().to_string();
    server_ = std::move(server).value();
  }
  std::unique_ptr<KeyValueStore> join(const std::string& member) override {
    auto client = StoreClient::connect(
        {.endpoint = server_->endpoint(), .security = plain(), .member = member}, soon());
    EXPECT_TRUE(client.is_ok()) << client.status().to_string();
    if (has_collectives_) return std::move(client).value();
    return std::make_unique<VerbsOnly>(std::move(client).value());
  }

 private:
  const bool has_collectives_;
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

}  // namespace

std::string name_of(const testing::TestParamInfo<StoreKind>& of) {
  switch (of.param) {
    case StoreKind::kServer:
      return "Server";
    case StoreKind::kServerByVerbs:
      return "ServerByVerbs";
    case StoreKind::kMemory:
      return "Memory";
  }
  return "none";
}

std::unique_ptr<StoreUnderTest> StoreUnderTest::start(StoreKind kind) {
  if (kind == StoreKind::kMemory) return std::make_unique<StoreInMemory>();
  return std::make_unique<ServedStore>(kind == StoreKind::kServer);
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
