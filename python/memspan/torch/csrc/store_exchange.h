// SPDX-License-Identifier: Apache-2.0
// How the members of a process group meet to make a memspan_group: by texts through its c10d store.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

namespace memspan::tensors {

// This member of a group, and how it meets the others.
struct Members {
  int rank;
  int size;
  c10::intrusive_ptr<c10d::Store> store;
  std::chrono::milliseconds timeout;
};

// A connection of one's own: who waits for a key has a store for himself, and another thread's wait
// may be what the member that will set it waits for. A store that somebody wrote in Python may
// have none.
inline c10::intrusive_ptr<c10d::Store> connected_anew(
    const c10::intrusive_ptr<c10d::Store>& store) {
  try {
    return store->clone();
  } catch (const std::exception&) {
    return store;
  }
}

// What memspan_group_create() calls. The keys of one round are those of no other, also when the
// members have met at this store before.
class StoreExchange {
 public:
  // `members` must outlive it; `purpose` keeps keys apart.
  StoreExchange(const Members& members, const std::string& purpose)
      : members_(members),
        store_(connected_anew(members.store)),
        prefix_("memspan/" + purpose + "/") {
    const std::string mine = prefix_ + "times/" + std::to_string(members.rank);
    prefix_ += std::to_string(store_->add(mine, 1)) + "/";
  }

  static int call(void* self, const void* mine, std::size_t bytes, void* all) {
    return static_cast<StoreExchange*>(self)->exchange(mine, bytes, all);
  }

  // Of the call that did not give 0.
  const std::string& failure() const { return failure_; }

 private:
  int exchange(const void* mine, std::size_t bytes, void* all) {
    try {
      std::vector<std::string> keys;
      const std::string round = prefix_ + std::to_string(round_++) + "/";
      for (int member = 0; member < members_.size; ++member)
        keys.push_back(round + std::to_string(member));
      const auto* begin = static_cast<const std::uint8_t*>(mine);
      store_->set(keys[members_.rank], std::vector<std::uint8_t>(begin, begin + bytes));
      store_->wait(keys, members_.timeout);
      for (int member = 0; member < members_.size; ++member) {
        const std::vector<std::uint8_t> value = store_->get(keys[member]);
        TORCH_CHECK(value.size() == bytes, "rank ", member, " gave ", value.size(), " bytes, not ",
                    bytes);
        std::memcpy(static_cast<std::byte*>(all) + member * bytes, value.data(), bytes);
      }
      return 0;
    } catch (const std::exception& error) {
      failure_ = error.what();
      return 1;
    }
  }

  const Members& members_;
  const c10::intrusive_ptr<c10d::Store> store_;
  std::string prefix_;
  int round_ = 0;
  std::string failure_;
};

}  // namespace memspan::tensors
