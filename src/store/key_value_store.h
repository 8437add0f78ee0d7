// SPDX-License-Identifier: Apache-2.0
// A key-value store that the members of a job share to find each other and to agree. Everything
// else that a job needs of a store is a recipe on these verbs (store/recipes/).
//
//   KeyValueStore ◄── StoreClient     the built-in server, over a connection (client.h)
//
// One object is one member, and it holds one lease. Keys may be put under the lease
// (KeyLife::kLease). The implementation renews the lease by itself. The lease ends with end() or
// the destructor, with the process, or when the member was silent for the agreed time. The store
// then removes the lease's keys, which every watch sees, and each pending or later call of the
// object returns kStoreLost.
//
// Invariant: all members see the operations on one key in the same order. A call that returned
// kTimeout or kStoreLost may have taken effect, or may still do so.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/clock.h"
#include "core/status.h"

namespace memspan::inline store {

class RankService;

inline constexpr std::size_t kMaxKeyBytes = 8192;
inline constexpr std::size_t kMaxValueBytes = std::size_t{8} << 20;

// Limits of every implementation; kInvalidArgument names the limit. The last one is for the keys
// and values that list() returns, together.
Status check_store_key(std::string_view key);
Status check_store_value(std::string_view value);
Status check_store_listing(std::size_t bytes);

// Lifetime of a key that a call writes.
enum class KeyLife {
  kPermanent,  // until it is removed. An existing key keeps its lease, except after set()
  kLease,      // until it is removed or this member's lease ends
};

// The numbers are part of the protocol.
enum class StoreEvent : std::uint8_t { kNone = 0, kSet = 1, kRemoved = 2 };

// A change that a watch reports. A value.
struct StoreChange {
  StoreEvent event = StoreEvent::kSet;
  std::string key;
  std::string value;  // empty when removed
};
using StoreWatcher = std::function<void(const StoreChange&)>;

// Keys and values, by key.
using StoreListing = std::vector<std::pair<std::string, std::string>>;

// Until when unwatch() waits for a call of the watcher.
inline Deadline end_of_watcher(const Deadline& deadline) {
  constexpr Duration kPatience = std::chrono::seconds(5);
  return deadline.remaining() < kPatience ? Deadline::after(kPatience) : deadline;
}

// Thread-safe. A key has 1 to kMaxKeyBytes bytes and a value at most kMaxValueBytes; anything else
// is kInvalidArgument. Every call ends with kTimeout soon after its deadline.
class KeyValueStore : NotCopyable {
 public:
  virtual ~KeyValueStore() = default;

  virtual Status set(std::string_view key, std::string_view value, Deadline deadline,
                     KeyLife life = KeyLife::kPermanent) = 0;
  // Waits until the key exists. kTimeout names the key.
  virtual Result<std::string> get(std::string_view key, Deadline deadline) = 0;
  // kNotFound when the key does not exist.
  virtual Result<std::string> get_now(std::string_view key, Deadline deadline) = 0;
  // Sets the key to `desired` if its value is `expected`. Returns the value that the key has
  // afterwards: `desired` also if another member has written the same, so a caller that must be
  // the only one adds a nonce. A missing key counts as empty in both.
  virtual Result<std::string> compare_and_swap(std::string_view key, std::string_view expected,
                                               std::string_view desired, Deadline deadline,
                                               KeyLife life = KeyLife::kPermanent) = 0;
  // True when the key existed.
  virtual Result<bool> remove(std::string_view key, Deadline deadline) = 0;
  // The keys that begin with `prefix`; all together at most kMaxValueBytes.
  virtual Result<StoreListing> list(std::string_view prefix, Deadline deadline) = 0;

  // After this returns, a thread of the implementation calls `watcher` for every change of a key
  // with the prefix, in order. The watcher may call the store but not destroy it. Returns the
  // watch's id.
  virtual Result<std::uint64_t> watch(std::string_view prefix, StoreWatcher watcher,
                                      Deadline deadline) = 0;
  // After this returns, no call of the watcher runs or begins (the watcher itself may end its
  // watch). kTimeout if a call of it did not end by the deadline, or within 5 s if that is later:
  // the caller may destroy next what the watcher uses. The watch is over nevertheless.
  virtual Status unwatch(std::uint64_t watch, Deadline deadline) = 0;

  // Ends the lease like the destructor. After it returns, no watcher runs or begins. Watchers may
  // not call it.
  virtual void end() = 0;
  // The lease's number: not 0, and never used again by the same store.
  virtual std::uint64_t lease() const = 0;
  // This member's name for messages, such as "PE 3".
  virtual const std::string& member() const = 0;

  // Null if this store does not answer the recipe of ranks itself. For the recipe's use.
  virtual RankService* rank_service() { return nullptr; }

 protected:
  KeyValueStore() = default;
};

}  // namespace memspan::inline store
