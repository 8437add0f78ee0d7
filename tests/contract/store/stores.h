// SPDX-License-Identifier: Apache-2.0
// The stores that the contract runs over, and members of them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/clock.h"
#include "store/key_value_store.h"

namespace memspan::contract {

enum class StoreKind {
  kServer,        // the built-in server over TCP
  kReconnecting,  // the same, by members that would come back
  kMemory,        // in this process
  kEtcd,          // three processes of etcd
};
std::string name_of(const testing::TestParamInfo<StoreKind>& of);

// Far longer than anything here takes, also under a sanitizer on a busy machine.
inline Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}
// For what is to time out.
inline Deadline brief() {
  return Deadline::after(std::chrono::milliseconds(60));
}

// A member whose calls a test may count or change.
class ForwardingStore : public KeyValueStore {
 public:
  explicit ForwardingStore(std::unique_ptr<KeyValueStore> store) : store_(std::move(store)) {}
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

// One store. Thread-safe.
class StoreUnderTest {
 public:
  // Null where why_not() says so.
  static std::unique_ptr<StoreUnderTest> start(StoreKind kind);
  static std::string why_not(StoreKind kind);
  virtual ~StoreUnderTest() = default;
  virtual std::unique_ptr<KeyValueStore> join(const std::string& member) = 0;
};

class StoreTest : public testing::TestWithParam<StoreKind> {
 protected:
  std::unique_ptr<KeyValueStore> join(const std::string& member) { return store_->join(member); }
  // Runs `run` in a thread for each rank, with a member "PE rank" of its own, and waits for all.
  void run_members(int size, const std::function<void(KeyValueStore&, int)>& run);

  // Its members wait for another store when this one ends (reconnecting_store_test.cc).
  bool outlives_the_store() const { return GetParam() == StoreKind::kReconnecting; }

  void SetUp() override;

  std::unique_ptr<StoreUnderTest> store_ = StoreUnderTest::start(GetParam());
};

#define MEMSPAN_FOR_ALL_STORES(suite)                                                    \
  INSTANTIATE_TEST_SUITE_P(All, suite,                                                   \
                           testing::Values(StoreKind::kServer, StoreKind::kReconnecting, \
                                           StoreKind::kMemory, StoreKind::kEtcd),        \
                           name_of)

}  // namespace memspan::contract
