// SPDX-License-Identifier: Apache-2.0
// Tensors that own a piece of the symmetric heap, and what becomes of them when it is given back.
//
// A tensor's storage says what it is by its deleter: memory of the heap (Allocation), or memory of
// its own that took the heap's place (Detached), so that neither a view nor a copy of the tensor
// can reach the heap after free() or the job's end:
//
//   storage ──► Allocation ──► the heap           free(), finalize()
//   storage ──► Detached ──► memory of its own  ◄─┘
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/StorageImpl.h>
#include <sys/mman.h>

#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace memspan::tensors {

// What a detached storage keeps.
struct Detached {
  void* memory;
  std::size_t bytes;
  const char* why;

  static void release(void* detached) {
    auto* const self = static_cast<Detached*>(detached);
    munmap(self->memory, self->bytes);
    delete self;
  }
};

// What the storage of a symmetric tensor keeps.
struct Allocation {
  void* base;
  std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> storage = {};

  static void forget(void* allocation);
};

// What a detached tensor has.
enum class Contents { kAsBefore, kZeros };

// All that live in this process. Thread-safe.
class Allocations {
 public:
  static Allocations& all() {
    // Never destroyed: tensors may outlive main.
    static auto* const made = new Allocations;
    return *made;
  }

  // A tensor of memory that the heap gave.
  at::Tensor own(void* base, at::IntArrayRef shape, at::ScalarType dtype) {
    auto* const allocation = new Allocation{base};
    at::Tensor made = at::for_blob(base, shape)
                          .context(allocation, Allocation::forget)
                          .target_device(at::Device(at::kCPU))
                          .options(at::TensorOptions().dtype(dtype))
                          .make_tensor();
    allocation->storage = made.storage().getWeakStorageImpl();
    const std::lock_guard lock(mutex_);
    live_.insert(allocation);
    return made;
  }

  // Of every live tensor and its views: they never reach the heap again.
  void detach_all(Contents contents, const char* why) {
    std::vector<c10::intrusive_ptr<c10::StorageImpl>> storages;
    {
      const std::lock_guard lock(mutex_);
      for (const Allocation* allocation : live_)
        if (auto storage = allocation->storage->lock()) storages.push_back(std::move(storage));
    }
    for (const auto& storage : storages) detach(storage.get(), contents, why);
  }

  static void detach(c10::StorageImpl* storage, Contents contents, const char* why) {
    at::DataPtr own = make_zeros(storage->nbytes(), why);
    if (contents == Contents::kAsBefore) std::memcpy(own.get(), storage->data(), storage->nbytes());
    storage->set_data_ptr_noswap(std::move(own));
  }

  void erase(const Allocation* allocation) {
    const std::lock_guard lock(mutex_);
    live_.erase(allocation);
  }

 private:
  // They cost nothing before somebody looks at them.
  static at::DataPtr make_zeros(std::size_t bytes, const char* why) {
    const std::size_t size = bytes == 0 ? 1 : bytes;
    void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(memory != MAP_FAILED, "there are no ", bytes, " bytes for a tensor that ", why);
    return {memory, new Detached{memory, size, why}, Detached::release, at::Device(at::kCPU)};
  }

  std::mutex mutex_;
  std::set<const Allocation*> live_;
};

inline void Allocation::forget(void* allocation) {
  auto* const self = static_cast<Allocation*>(allocation);
  Allocations::all().erase(self);
  delete self;
}

// Null when the tensor's memory is not of the heap, or no longer.
inline const Allocation* allocation_of(const at::Tensor& tensor) {
  const at::DataPtr& data = tensor.storage().data_ptr();
  if (data.get_deleter() != Allocation::forget) return nullptr;
  return static_cast<const Allocation*>(data.get_context());
}

// Why it is no longer; null when it never was, or still is.
inline const char* why_detached(const at::Tensor& tensor) {
  const at::DataPtr& data = tensor.storage().data_ptr();
  if (data.get_deleter() != Detached::release) return nullptr;
  return static_cast<const Detached*>(data.get_context())->why;
}

}  // namespace memspan::tensors
