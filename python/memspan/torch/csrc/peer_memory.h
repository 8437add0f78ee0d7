// SPDX-License-Identifier: Apache-2.0
// PyTorch's symmetric memory on the CPU. An allocation is shareable memory of this process. A
// rendezvous maps it on all members of a group, with a signal pad of that group: the signals of one
// group cannot end the waits of another one on the same tensor. The word of (channel, sender) in a
// member's pad is 1 from the sender's put_signal until the member's wait_signal.
#pragma once

#include <ATen/ops/from_blob.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "groups.h"
#include "torch_group.h"

namespace memspan::tensors {

namespace symm = c10d::symmetric_memory;

class PeerMemory;

// What one allocation has of one group.
struct Peers {
  std::shared_ptr<const Mapping> mapping;
  std::shared_ptr<const Mapping> pads;
  std::map<std::size_t, c10::intrusive_ptr<PeerMemory>> handles;  // by offset
};

// An allocation. Only the groups that map it change.
struct Allocation {
  Allocation(std::size_t size, std::size_t pad_size, std::optional<std::string> group)
      : bytes(size),
        pad_bytes(pad_size),
        default_group(std::move(group)),
        block(std::make_shared<Block>(size)) {}

  const std::size_t bytes;
  const std::size_t pad_bytes;
  const std::optional<std::string> default_group;
  const std::shared_ptr<Block> block;

  std::mutex mutex;
  // The handles keep the allocation: free() empties this.
  std::map<std::shared_ptr<const TorchGroup>, Peers> peers;
};

// An allocation on all members of a group. What it gives lives as long as it does, freed or not.
class PeerMemory : public symm::SymmetricMemory {
 public:
  PeerMemory(std::shared_ptr<const Allocation> allocation, const Peers& peers, std::size_t offset)
      : allocation_(std::move(allocation)),
        mapping_(peers.mapping),
        pad_mapping_(peers.pads),
        offset_(offset) {
    for (int member = 0; member < group().size(); ++member) {
      buffers_.push_back(mapping_->of(member));
      pads_.push_back(pad_mapping_->of(member));
    }
  }

  std::vector<void*> get_buffer_ptrs() override { return buffers_; }
  // PyTorch asks for them to make tensors of what is the size of pads now.
  std::vector<void*> get_signal_pad_ptrs() override {
    TORCH_CHECK(symm::get_signal_pad_size() <= allocation_->pad_bytes,
                "the size of signal pads was set to ", symm::get_signal_pad_size(),
                " after this memory was allocated with pads of ", allocation_->pad_bytes);
    return pads_;
  }
  void** get_buffer_ptrs_dev() override { return buffers_.data(); }
  void** get_signal_pad_ptrs_dev() override { return pads_.data(); }
  std::size_t get_buffer_size() override { return allocation_->bytes; }
  std::size_t get_offset() override { return offset_; }
  bool has_multicast_support() override { return false; }
  void* get_multicast_ptr() override { return nullptr; }
  int get_rank() override { return group().rank(); }
  int get_world_size() override { return group().size(); }
  c10::Device get_device() override { return c10::Device(c10::kCPU); }
  bool world_within_direct_access() override { return true; }

  void put_signal(int dst_rank, int channel, std::size_t timeout_ms) override {
    check_rank(dst_rank);
    group().swap_word(word(dst_rank, channel, get_rank()), 0, 1, dst_rank, timeout_ms, [&] {
      return "rank " + std::to_string(dst_rank) +
             " did not wait for the signal before on channel " + std::to_string(channel);
    });
  }
  void wait_signal(int src_rank, int channel, std::size_t timeout_ms) override {
    check_rank(src_rank);
    group().swap_word(word(get_rank(), channel, src_rank), 1, 0, src_rank, timeout_ms, [&] {
      return "no signal of rank " + std::to_string(src_rank) + " came on channel " +
             std::to_string(channel);
    });
  }
  // A signal to everybody else and one of everybody else.
  void barrier(int channel, std::size_t timeout_ms) override {
    const int size = get_world_size();
    check_channel(channel);
    for (int step = 1; step < size; ++step)
      put_signal((get_rank() + step) % size, channel, timeout_ms);
    for (int step = 1; step < size; ++step)
      wait_signal((get_rank() + size - step) % size, channel, timeout_ms);
  }

  // Where `here`, an address in this process's data, is at `member`.
  std::byte* at(int member, const void* here) const {
    const auto offset = static_cast<const std::byte*>(here) - mapping_->of(group().rank());
    return mapping_->of(member) + offset;
  }
  // The member's data, or its pad, as a tensor that keeps it; the offset is in elements.
  at::Tensor buffer(int member, c10::IntArrayRef sizes, at::ScalarType type,
                    std::int64_t offset) const {
    check_rank(member);
    return view("data", mapping_, member, allocation_->bytes, sizes, type, offset);
  }
  at::Tensor signal_pad(int member, c10::IntArrayRef sizes, at::ScalarType type,
                        std::int64_t offset) const {
    check_rank(member);
    return view("signal pad", pad_mapping_, member, allocation_->pad_bytes, sizes, type, offset);
  }
  std::size_t pad_bytes() const { return allocation_->pad_bytes; }

 private:
  const TorchGroup& group() const { return mapping_->group(); }
  void check_rank(int rank) const {
    const int size = group().size();
    TORCH_CHECK_VALUE(rank >= 0 && rank < size, "rank is ", rank, ", allowed are 0 to ", size - 1);
  }
  void check_channel(int channel) const {
    const auto channels =
        static_cast<int>(allocation_->pad_bytes / sizeof(std::uint32_t)) / group().size();
    TORCH_CHECK_VALUE(channel >= 0 && channel < channels, "channel is ", channel,
                      ", allowed are 0 to ", channels - 1, " in signal pads of ",
                      allocation_->pad_bytes, " bytes");
  }
  std::uint32_t& word(int member, int channel, int sender) const {
    check_channel(channel);
    auto* pad = reinterpret_cast<std::uint32_t*>(pad_mapping_->of(member));
    return pad[group().size() * channel + sender];
  }
  at::Tensor view(const char* what, const std::shared_ptr<const Mapping>& of, int member,
                  std::size_t bytes, c10::IntArrayRef sizes, at::ScalarType type,
                  std::int64_t offset) const {
    std::size_t wanted = c10::elementSize(type);
    for (const std::int64_t size : sizes) {
      TORCH_CHECK_VALUE(size >= 0, "sizes are ", sizes, ", each is 0 or more");
      TORCH_CHECK_VALUE(!__builtin_mul_overflow(wanted, static_cast<std::size_t>(size), &wanted),
                        "sizes are ", sizes, ", which no memory has");
    }
    std::size_t skipped = 0;
    TORCH_CHECK_VALUE(offset >= 0 &&
                          !__builtin_mul_overflow(static_cast<std::size_t>(offset),
                                                  c10::elementSize(type), &skipped) &&
                          skipped <= bytes && wanted <= bytes - skipped,
                      wanted, " bytes from element ", offset, " of ", type,
                      " are asked for, and the ", what, " has ", bytes);
    return at::from_blob(
        of->of(member) + skipped, sizes, [allocation = allocation_, of](void*) {},
        at::TensorOptions().dtype(type));
  }

  const std::shared_ptr<const Allocation> allocation_;
  const std::shared_ptr<const Mapping> mapping_, pad_mapping_;
  const std::size_t offset_;  // of the rendezvous' tensor, in bytes
  std::vector<void*> buffers_, pads_;
};

// Thread-safe. Only rendezvous() is collective.
class PeerMemoryAllocator : public symm::SymmetricMemoryAllocator {
 public:
  static constexpr const char* kName = "MEMSPAN";

  void* alloc(std::size_t size, int /*device*/,
              const std::optional<std::string>& group_name) override {
    auto allocation = std::make_shared<Allocation>(size, symm::get_signal_pad_size(), group_name);
    void* const begin = allocation->block->begin();
    const std::lock_guard lock(mutex_);
    allocations_.emplace(begin, std::move(allocation));
    return begin;
  }

  void free(void* begin) override {
    std::shared_ptr<Allocation> allocation;
    {
      const std::lock_guard lock(mutex_);
      const auto found = allocations_.find(begin);
      if (found == allocations_.end()) return;
      allocation = std::move(found->second);
      allocations_.erase(found);
    }
    // The handles that somebody has, and their tensors, keep the memory.
    const std::lock_guard lock(allocation->mutex);
    allocation->peers.clear();
  }

  std::size_t get_alloc_size(void* begin) override {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(begin);
    TORCH_CHECK_VALUE(found != allocations_.end(), begin, " is no symmetric memory of the CPU");
    return found->second->bytes;
  }

  // nullptr for what is no symmetric memory.
  c10::intrusive_ptr<symm::SymmetricMemory> rendezvous(
      void* address, const std::optional<std::string>& group_name) override {
    const std::shared_ptr<Allocation> allocation = find(address);
    if (allocation == nullptr) return nullptr;
    const auto& name = group_name.has_value() ? group_name : allocation->default_group;
    TORCH_CHECK_VALUE(name.has_value(), "neither the call nor the allocation says which group");
    std::shared_ptr<const TorchGroup> group = Groups::instance().group(*name);
    const WithoutGil without_gil;
    const std::lock_guard lock(allocation->mutex);
    auto found = allocation->peers.find(group);
    if (found == allocation->peers.end()) {
      std::erase_if(allocation->peers, [](const auto& peers) { return peers.first->has_ended(); });
      auto mapping = std::make_shared<Mapping>(group, allocation->block);
      auto pads = std::make_shared<Mapping>(group, std::make_shared<Block>(allocation->pad_bytes));
      found = allocation->peers
                  .emplace(std::move(group), Peers{std::move(mapping), std::move(pads), {}})
                  .first;
    }
    Peers& peers = found->second;
    const std::size_t offset = static_cast<std::byte*>(address) - allocation->block->begin();
    c10::intrusive_ptr<PeerMemory>& handle = peers.handles[offset];
    if (!handle) handle = c10::make_intrusive<PeerMemory>(allocation, peers, offset);
    return handle;
  }

  bool has_multicast_support(int /*device*/) override { return false; }
  c10::DeviceType supported_device_type() override { return c10::kCPU; }
  std::string name() override { return kName; }
  bool has_allocation(void* address) override { return find(address) != nullptr; }

 private:
  std::shared_ptr<Allocation> find(void* address) {
    const std::lock_guard lock(mutex_);
    auto found = allocations_.upper_bound(address);
    if (found == allocations_.begin()) return nullptr;
    --found;
    const auto distance = static_cast<std::byte*>(address) - static_cast<std::byte*>(found->first);
    const bool is_inside =
        distance == 0 || static_cast<std::size_t>(distance) < found->second->bytes;
    return is_inside ? found->second : nullptr;
  }

  std::mutex mutex_;
  std::map<void*, std::shared_ptr<Allocation>> allocations_;  // by where they begin
};

}  // namespace memspan::tensors
