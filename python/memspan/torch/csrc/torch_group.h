// SPDX-License-Identifier: Apache-2.0
// A process group of PyTorch as a group of memspan, which is all that symmetric memory needs of it:
// its members meet once, through the store that the process group has anyway.
#pragma once

#include <c10/util/intrusive_ptr.h>
#include <memspan/group.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "group_failures.h"
#include "store_exchange.h"

namespace memspan::tensors {

inline std::chrono::milliseconds timeout_of(c10d::ProcessGroup& group) {
  try {
    if (group.hasBackendForDeviceType(c10::kCPU))
      return group.getBackend(c10::kCPU)->getBackendOptions()->timeout;
  } catch (const c10::Error&) {
    // A backend without options: what stores have is what the rest of torch.distributed has.
  }
  return c10d::Store::kDefaultTimeout;
}

// A process group's, or those of _SymmetricMemory.set_group_info().
inline Members members_of(const std::string& name) {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  try {
    group = c10d::resolve_process_group(name);
  } catch (const c10::Error&) {
    auto& info = c10d::symmetric_memory::get_group_info(name);
    return {info.rank, info.world_size, info.store, c10d::Store::kDefaultTimeout};
  }
  TORCH_CHECK_VALUE(group->getStore(), "the process group \"", name,
                    "\" has no store, through which its members could meet");
  return {group->getRank(), group->getSize(), group->getStore(), timeout_of(*group)};
}

// The group itself. Thread-safe but for what is collective.
class TorchGroup {
 public:
  // Collective.
  explicit TorchGroup(const std::string& name, const Members& members)
      : name_(name),
        store_(members.store),
        rank_(members.rank),
        size_(members.size),
        timeout_(std::clamp<std::chrono::milliseconds>(members.timeout, kShortest, kLongest)) {
    StoreExchange exchange(members, "symmetric_memory");
    const std::int32_t code =
        memspan_group_create(rank_, size_, StoreExchange::call, &exchange,
                             static_cast<std::uint32_t>(timeout_.count()), &group_);
    if (code == SMEM_OK) return;
    const std::string doing = "meeting the members of the process group \"" + name_ + "\"";
    if (!exchange.failure().empty()) raise("Error", doing + ": " + exchange.failure(), code);
    raise_failure(code, doing);
  }
  ~TorchGroup() {
    if (!c10d::symmetric_memory::is_finalizing()) memspan_group_destroy(group_);
  }
  TorchGroup(const TorchGroup&) = delete;
  TorchGroup& operator=(const TorchGroup&) = delete;

  // A name may stand for another group later. The store, which every process group has anew, says
  // whether it is this one.
  bool is_of(const Members& members) const { return store_.lock() == members.store; }
  bool has_ended() const { return store_.expired(); }
  const std::string& name() const { return name_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  // Where every member's `mine` is here. Collective; ends with unmap().
  std::vector<void*> map(void* mine) const {
    std::vector<void*> mapped(size_);
    const WithoutGil without_gil;
    const std::int32_t code = memspan_group_map(group_, mine, mapped.data());
    if (code != SMEM_OK)
      raise_failure(code, "mapping memory of the process group \"" + name_ + "\"");
    return mapped;
  }
  void unmap(const std::vector<void*>& mapped) const { memspan_group_unmap(group_, mapped.data()); }

  // Waits until `word` is `expected`, which `member` makes it, and makes it `value`. 0 is the
  // process group's time-out. `what` gives what it says when that does not come about.
  template <typename What>
  void swap(std::uint32_t& word, std::uint32_t expected, std::uint32_t value, int member,
            std::size_t timeout_ms, What what) const {
    using Clock = std::chrono::steady_clock;
    const std::chrono::milliseconds limit =
        timeout_ms == 0
            ? timeout_
            : std::chrono::milliseconds(std::min<std::size_t>(timeout_ms, kLongest.count()));
    const auto end = Clock::now() + limit;
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
      const auto slice = std::clamp(left, kShortest, kBetweenSignals);
      std::int32_t code;
      {
        const WithoutGil without_gil;
        code = memspan_group_swap_word(group_, &word, expected, value, member,
                                       static_cast<std::uint32_t>(slice.count()));
      }
      if (code == SMEM_OK) return;
      if (code != SMEM_TIMEOUT) raise_failure(code, what());
      run_signal_handlers();
      if (Clock::now() >= end)
        raise("Timeout", what() + " within " + std::to_string(limit.count()) + " ms", code);
    }
  }

 private:
  static constexpr std::chrono::milliseconds kShortest{1};
  static constexpr std::chrono::milliseconds kLongest{std::numeric_limits<std::int32_t>::max()};
  // So often a wait looks whether somebody pressed Ctrl-C.
  static constexpr std::chrono::milliseconds kBetweenSignals{200};

  const std::string name_;
  const c10::weak_intrusive_ptr<c10d::Store> store_;
  const int rank_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  memspan_group_t group_ = nullptr;
};

// Memory of this process that the members of groups can map; zeros at first.
class Block {
 public:
  explicit Block(std::size_t bytes) : begin_(memspan_shareable_create(bytes)) {
    if (begin_ == nullptr)
      raise("Error",
            "symmetric memory of " + std::to_string(bytes) + " bytes: " + memspan_last_error(),
            SMEM_MALLOC_FAILED);
  }
  ~Block() {
    if (!c10d::symmetric_memory::is_finalizing()) memspan_shareable_destroy(begin_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::byte* begin() const { return static_cast<std::byte*>(begin_); }

 private:
  void* const begin_;
};

// Such a block of every member of a group, mapped here.
class Mapping {
 public:
  // Collective; blocks of the same size.
  Mapping(std::shared_ptr<const TorchGroup> group, std::shared_ptr<const Block> block)
      : group_(std::move(group)), block_(std::move(block)), mapped_(group_->map(block_->begin())) {}
  ~Mapping() {
    if (!c10d::symmetric_memory::is_finalizing()) group_->unmap(mapped_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const TorchGroup& group() const { return *group_; }
  std::byte* of(int member) const { return static_cast<std::byte*>(mapped_[member]); }

 private:
  const std::shared_ptr<const TorchGroup> group_;
  const std::shared_ptr<const Block> block_;
  const std::vector<void*> mapped_;
};

}  // namespace memspan::tensors
