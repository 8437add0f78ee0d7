// SPDX-License-Identifier: Apache-2.0
// The memspan group of a process group of PyTorch, which is all that symmetric memory needs of it.
// A process group whose backend is memspan has one. For another's, the members join one of their
// own through the process group's store.
#pragma once

#include <c10/util/intrusive_ptr.h>
#include <memspan/group.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "group_failures.h"
#include "interrupts.h"
#include "shared_group.h"
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

// Null when it is another's.
inline c10::intrusive_ptr<SharingBackend> sharing_backend_of(c10d::ProcessGroup& group) {
  if (!group.hasBackendForDeviceType(c10::kCPU)) return {};
  const auto backend = group.getBackend(c10::kCPU);
  // Not dynamic_intrusive_pointer_cast, which leaks what it cannot cast.
  if (dynamic_cast<SharingBackend*>(backend.get()) == nullptr) return {};
  return c10::static_intrusive_pointer_cast<SharingBackend>(backend);
}

struct TorchMembers : Members {
  c10::intrusive_ptr<SharingBackend> backend;  // null: they join a group of their own
};

// A process group's, or those of _SymmetricMemory.set_group_info().
inline TorchMembers members_of(const std::string& name) {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  try {
    group = c10d::resolve_process_group(name);
  } catch (const c10::Error&) {
    auto& info = c10d::symmetric_memory::get_group_info(name);
    return {{info.rank, info.world_size, info.store, c10d::Store::kDefaultTimeout}, {}};
  }
  TORCH_CHECK_VALUE(group->getStore(), "the process group \"", name,
                    "\" has no store, through which its members could join a group");
  return {{group->getRank(), group->getSize(), group->getStore(), timeout_of(*group)},
          sharing_backend_of(*group)};
}

// The group itself. Thread-safe but for what is collective.
class TorchGroup {
 public:
  // Collective when the members join a group of their own.
  TorchGroup(const std::string& name, const TorchMembers& members)
      : name_(name),
        store_(members.store),
        backend_(members.backend),
        is_shared_(members.backend.defined()),
        rank_(members.rank),
        size_(members.size),
        timeout_(std::clamp<std::chrono::milliseconds>(members.timeout, kShortest, kLongest)),
        handle_(is_shared_ ? members.backend->share_group() : join(members)) {}
  ~TorchGroup() {
    // PyTorch is being torn down, and perhaps the library: the end of the process does it.
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): because the process ends anyway
    if (c10d::symmetric_memory::is_finalizing()) static_cast<void>(new auto(std::move(handle_)));
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
    struct Call {
      std::vector<void*> mapped;
      std::int32_t code = SMEM_OK;
      std::string failure;
    };
    // Owners: this call, and the backend's queue while the task is in it.
    const auto call = std::make_shared<Call>();
    call->mapped.resize(size_);
    const WithoutGil without_gil;
    in_order([call, handle = handle_, mine] {
      call->code = memspan_group_map(handle->get(), mine, call->mapped.data());
      if (call->code != SMEM_OK) call->failure = memspan_last_error();
    });
    if (call->code != SMEM_OK) {
      throw_if_interrupted();
      raise_failure(call->code, "mapping memory of the process group \"" + name_ + "\"",
                    call->failure);
    }
    return std::move(call->mapped);
  }
  void unmap(const std::vector<void*>& mapped) const {
    memspan_group_unmap(handle_->get(), mapped.data());
  }

  // Waits until `word` is `expected`, which `member` makes it, and makes it `value`. 0 is the
  // process group's time-out. `what` gives the text of a failure.
  template <typename What>
  void swap_word(std::uint32_t& word, std::uint32_t expected, std::uint32_t value, int member,
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
        code = memspan_group_swap_word(handle_->get(), &word, expected, value, member,
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

  std::shared_ptr<const GroupHandle> join(const Members& members) const {
    StoreExchange exchange(members, "symmetric_memory");
    memspan_group_t group = nullptr;
    const Interruptible interruptible;
    const std::int32_t code =
        memspan_group_create(rank_, size_, StoreExchange::call, &exchange,
                             static_cast<std::uint32_t>(timeout_.count()), &group);
    if (code == SMEM_OK) return std::make_shared<const GroupHandle>(group);
    throw_if_interrupted();
    const std::string doing = "joining the members of the process group \"" + name_ + "\"";
    if (!exchange.failure().empty()) raise("Error", doing + ": " + exchange.failure(), code);
    raise_failure(code, doing);
  }
  // A collective of the group: of a shared one among those of its backend.
  void in_order(std::function<void()> task) const {
    if (!is_shared_) return task();
    const auto backend = backend_.lock();
    TORCH_CHECK(backend, "the process group \"", name_, "\" has been destroyed");
    backend->run_in_order(std::move(task));
  }

  const std::string name_;
  const c10::weak_intrusive_ptr<c10d::Store> store_;
  const c10::weak_intrusive_ptr<SharingBackend> backend_;
  const bool is_shared_;
  const int rank_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  std::shared_ptr<const GroupHandle> handle_;
};

// Memory of this process that the members of groups can map; zeros at first.
class Block {
 public:
  explicit Block(std::size_t bytes)
      : begin_(memspan_shareable_create(std::max<std::size_t>(bytes, 1))) {
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
