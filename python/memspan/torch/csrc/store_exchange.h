// SPDX-License-Identifier: Apache-2.0
// The all-gather by which the members of a process group make a memspan_group, over its c10d store.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "interrupts.h"

namespace memspan::tensors {

// This member of a group, and the store by which it finds the others.
struct Members {
  int rank;
  int size;
  c10::intrusive_ptr<c10d::Store> store;
  std::chrono::milliseconds timeout;
};

// What memspan_group_create() calls. Every round has keys of its own, also when the members have
// made a group over this store before. It uses the store's connection: a new one costs a look-up of
// names.
class StoreExchange {
 public:
  // `members` must outlive it; `purpose` keeps keys apart.
  StoreExchange(const Members& members, const std::string& purpose)
      : members_(members), prefix_("memspan/" + purpose + "/") {
    const std::string mine = prefix_ + "times/" + std::to_string(members.rank);
    prefix_ += std::to_string(members.store->add(mine, 1)) + "/";
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
      keys.reserve(static_cast<std::size_t>(members_.size));
      const std::string round = prefix_ + std::to_string(round_++) + "/";
      for (int member = 0; member < members_.size; ++member)
        keys.push_back(round + std::to_string(member));
      const auto* begin = static_cast<const std::uint8_t*>(mine);
      members_.store->set(keys[members_.rank], std::vector<std::uint8_t>(begin, begin + bytes));
      wait_for(keys);
      for (int member = 0; member < members_.size; ++member) {
        const std::vector<std::uint8_t> value = members_.store->get(keys[member]);
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

  // Polls. Store::wait() would hold the connection, and another thread of this process may need it
  // for something that the member waits for before it sets its key.
  void wait_for(const std::vector<std::string>& keys) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    bool is_silent = true;
    for (auto pause = kFirstPause; !members_.store->check(keys);
         pause = std::min(2 * pause, kLongestPause)) {
      const auto waited = Clock::now() - begin;
      TORCH_CHECK(waited < members_.timeout, "rank ", missing(keys), " did not come within ",
                  members_.timeout.count(), " ms");
      TORCH_CHECK(run_signal_functions() == 0, "a signal interrupted the wait for rank ",
                  missing(keys));
      if (is_silent && waited > kSilence) {
        is_silent = false;
        TORCH_WARN("memspan: rank ", members_.rank, " waits for rank ", missing(keys),
                   " to make a process group, for ", members_.timeout.count(), " ms at most");
      }
      std::this_thread::sleep_for(pause);
    }
  }
  std::string missing(const std::vector<std::string>& keys) {
    std::string ranks;
    for (std::size_t member = 0; member < keys.size(); ++member)
      if (!members_.store->check({keys[member]}))
        ranks += (ranks.empty() ? "" : ", ") + std::to_string(member);
    return ranks;
  }

  static constexpr std::chrono::microseconds kFirstPause{100};
  static constexpr std::chrono::microseconds kLongestPause{10'000};
  static constexpr std::chrono::seconds kSilence{3};

  const Members& members_;
  std::string prefix_;
  int round_ = 0;
  std::string failure_;
};

}  // namespace memspan::tensors
