// SPDX-License-Identifier: Apache-2.0
// The stores that the contract runs over, and members of them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "core/clock.h"
#include "store/key_value_store.h"

namespace memspan::contract {

enum class StoreKind {
  kServer,         // the built-in server over TCP, which answers the recipes itself
  kServerByVerbs,  // the same, with recipes by the plain verbs
  kReconnecting,   // the same, by members that would come back
  kMemory,         // in this process
  kEtcd,           // three processes of etcd
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

#define MEMSPAN_FOR_ALL_STORES(suite)                                                          \
  INSTANTIATE_TEST_SUITE_P(                                                                    \
      All, suite,                                                                              \
      testing::Values(StoreKind::kServer, StoreKind::kServerByVerbs, StoreKind::kReconnecting, \
                      StoreKind::kMemory, StoreKind::kEtcd),                                   \
      name_of)

}  // namespace memspan::contract
