// SPDX-License-Identifier: Apache-2.0
// A key-value store in this process's memory, with the verbs of KeyValueStore and nothing else. Its
// members are objects of one process: tests, and jobs whose members are simulated.
#pragma once

#include <memory>
#include <string>

#include "store/key_value_store.h"

namespace memspan {

// Thread-safe. When it goes, all leases end: the members' calls return kStoreLost.
class MemoryStore {
 public:
  MemoryStore();
  ~MemoryStore();
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  // Another member, with a lease of its own. It may outlive the store. Its watchers run on a thread
  // of its own.
  std::unique_ptr<KeyValueStore> join(std::string member);

 private:
  class Shared;
  class Member;
  const std::shared_ptr<Shared> shared_;  // shared with the members
};

}  // namespace memspan
