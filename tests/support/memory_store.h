// SPDX-License-Identifier: Apache-2.0
// A key-value store in this process's memory, with the verbs of KeyValueStore and nothing else. Its
// members are objects of one process.
#pragma once

#include <memory>
#include <string>

#include "store/key_value_store.h"

namespace memspan {

// Thread-safe. Its destruction ends all leases: the members' calls return kStoreLost.
class MemoryStore {
 public:
  MemoryStore();
  ~MemoryStore();
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  // Creates a member with its own lease, and its own thread for watchers. The member may outlive
  // the store.
  std::unique_ptr<KeyValueStore> join(std::string member);

 private:
  class Shared;
  class Member;
  const std::shared_ptr<Shared> shared_;  // shared with the members
};

}  // namespace memspan
