// SPDX-License-Identifier: Apache-2.0
// Objects that callers name by a number. A number holds the slot and its generation, so that one
// that was given back is found to be stale instead of naming whoever has the slot now:
//
//   bit 30      16 15             0
//      | generation | slot          |     never 0, below 2^31, at least kLeast
//
// Slots are made 256 at a time, so that a table for many costs nothing while there are few.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/mutex.h"

namespace memspan::capi {

// Owns its objects. Thread-safe; find() takes no lock. An object must not be removed while
// another thread uses it: that is for the callers' own rules.
template <typename T>
class HandleTable {
 public:
  using Number = std::uint32_t;
  // Numbers below it are free for constants.
  static constexpr Number kLeast = 1u << 16;

  HandleTable() = default;
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;
  ~HandleTable() {
    clear();
    for (auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
  }

  // 0 when the table is full (65536 objects).
  Number add(std::unique_ptr<T> object) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::uint32_t index = 0;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else if (used_ < kChunks * kChunkSlots) {
      index = used_++;
      auto& chunk = chunks_[index / kChunkSlots];
      // Pairs with the load in slot().
      if (index % kChunkSlots == 0) chunk.store(new Chunk, std::memory_order_release);
    } else {
      return 0;
    }
    Slot& place = *slot(index);
    place.generation = place.generation % kMostGenerations + 1;
    place.object.store(object.release(), std::memory_order_relaxed);
    Number number = place.generation << 16 | index;
    // Pairs with find().
    place.number.store(number, std::memory_order_release);
    return number;
  }

  // Null when the number names nothing (any more).
  T* find(std::uint64_t number) const {
    const Slot* place = slot(number & 0xffff);
    if (place == nullptr || place->number.load(std::memory_order_acquire) != number || number == 0)
      return nullptr;
    return place->object.load(std::memory_order_relaxed);
  }

  std::unique_ptr<T> remove(std::uint64_t number) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    T* object = find(number);
    if (object == nullptr) return nullptr;
    auto index = static_cast<std::uint32_t>(number & 0xffff);
    slot(index)->number.store(0, std::memory_order_release);
    free_.push_back(index);
    return std::unique_ptr<T>(object);
  }

  // The numbers of the objects for which `matches` is true.
  template <typename Matches>
  std::vector<Number> numbers_of(Matches matches) const MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::vector<Number> numbers;
    for (std::uint32_t index = 0; index < used_; ++index) {
      Number number = slot(index)->number.load(std::memory_order_relaxed);
      if (number != 0 && matches(*find(number))) numbers.push_back(number);
    }
    return numbers;
  }

  void clear() {
    for (Number number : numbers_of([](const T&) { return true; })) remove(number);
  }

 private:
  static constexpr std::uint32_t kChunkSlots = 256;
  static constexpr std::uint32_t kChunks = 256;
  static constexpr std::uint32_t kMostGenerations = 0x7fff;
  struct Slot {
    std::atomic<Number> number{0};  // 0: free
    std::uint32_t generation = 0;
    std::atomic<T*> object{nullptr};
  };
  using Chunk = std::array<Slot, kChunkSlots>;

  Slot* slot(std::uint64_t index) const {
    Chunk* chunk = chunks_[index / kChunkSlots].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[index % kChunkSlots];
  }

  mutable Mutex mutex_;
  std::array<std::atomic<Chunk*>, kChunks> chunks_{};
  std::uint32_t used_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::vector<std::uint32_t> free_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::capi
