// SPDX-License-Identifier: Apache-2.0
// Objects that callers name by a handle. A handle holds the slot and its generation, so that a
// stale handle never names the slot's next object:
//
//   handle    63      48 47          16 15    0
//            |   kind   |  generation  | slot  |     kinds keep one part's handles from another's
//
// Handles of OpenSHMEM's teams and contexts are plain numbers without a kind, from kLeast to below
// 2^31. They fit in an int, and smaller numbers are free for constants.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/status.h"

namespace memspan::capi {

enum class HandleKind : std::uint64_t {
  kNumber = 0,  // of OpenSHMEM
  kPool = 1,
  kSpace = 2,
  kEndpoint = 3,
  kStream = 4,
  kRequest = 5,
  kGroup = 6,
  kMessage = 7,
  kEvent = 8
};
// In messages, by HandleKind.
inline constexpr std::array kObjectNames{"number",  "pool",  "space",   "endpoint", "stream",
                                         "request", "group", "request", "event"};

// Owns its objects. Thread-safe; find() and use() take no lock.
template <typename T, HandleKind kind, std::uint32_t kSlots = 4096>
class HandleTable : NotCopyable {
  static_assert(kSlots <= 1u << 16, "a handle has 16 bits for the slot");
  static_assert(kSlots < 256 || kSlots % 256 == 0, "chunks are whole");
  static constexpr bool kIsNumber = kind == HandleKind::kNumber;
  static constexpr std::uint64_t kMostGenerations = kIsNumber ? 0x7fff : 0xffff'ffff;
  struct Slot {
    std::atomic<std::uint64_t> handle{0};  // 0: no caller may use it
    std::atomic<std::uint32_t> users{0};
    std::atomic<bool> is_taken{false};
    std::uint64_t generation = 0;  // written by the thread that took it
    std::unique_ptr<T> object;     // the same
  };

 public:
  using Handle = std::conditional_t<kIsNumber, std::uint64_t, void*>;
  using Given = std::conditional_t<kIsNumber, std::uint64_t, const void*>;
  static constexpr std::uint32_t kMost = kSlots;
  static constexpr const char* kName = kObjectNames[static_cast<std::size_t>(kind)];
  static constexpr std::uint64_t kLeast = 1u << 16;

  // Holds the object while it lives; empty when the handle names none. Move-only.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (slot_ == nullptr) return;
      // Both pair with remove(): either it sees this user gone, or this sees that it waits. The
      // subtraction also releases what the user did with the object.
      slot_->users.fetch_sub(1, std::memory_order_seq_cst);
      if (slot_->handle.load(std::memory_order_seq_cst) == 0) slot_->users.notify_all();
    }
    explicit operator bool() const { return slot_ != nullptr; }
    T* operator->() const { return slot_->object.get(); }
    T& operator*() const { return *slot_->object; }

   private:
    friend class HandleTable;
    explicit Use(Slot* slot) : slot_(slot) {}
    Slot* slot_ = nullptr;
  };

  HandleTable() = default;
  ~HandleTable() {
    clear();
    for (auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
  }

  // Null when the table is full.
  Handle add(std::unique_ptr<T> object) {
    const std::uint32_t begin = first_.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      const std::uint32_t index = begin + i < kSlots ? begin + i : begin + i - kSlots;
      Slot& slot = make_slot(index);
      // The exchange pairs with remove(), whose slot this may be now; the load only saves it.
      if (slot.is_taken.load(std::memory_order_relaxed) ||
          slot.is_taken.exchange(true, std::memory_order_acquire))
        continue;
      first_.store(index + 1 < kSlots ? index + 1 : 0, std::memory_order_relaxed);
      slot.object = std::move(object);
      slot.generation = slot.generation % kMostGenerations + 1;
      const std::uint64_t handle =
          static_cast<std::uint64_t>(kind) << 48 | slot.generation << 16 | index;
      slot.handle.store(handle, std::memory_order_seq_cst);  // pairs with use() and find()
      return as_handle(handle);
    }
    return Handle{};
  }

  // Null when the handle is stale or invalid. Only for callers that themselves prevent the object's
  // removal during its use.
  T* find(Given handle) const {
    const Slot* slot = slot_of(as_number(handle));
    if (slot == nullptr || slot->handle.load(std::memory_order_acquire) != as_number(handle))
      return nullptr;
    return slot->object.get();
  }

  Use use(Given handle) const {
    Slot* slot = slot_of(as_number(handle));
    if (slot == nullptr) return Use();
    // Sequentially consistent, as remove()'s: either it sees this user, or this sees the handle
    // gone.
    slot->users.fetch_add(1, std::memory_order_seq_cst);
    Use held(slot);
    if (slot->handle.load(std::memory_order_seq_cst) != as_number(handle)) return Use();
    return held;
  }

  // Waits until no Use holds it any more, which its users must not do. Null when the handle names
  // none.
  std::unique_ptr<T> remove(Given handle) {
    std::uint64_t number = as_number(handle);
    Slot* slot = slot_of(number);
    if (slot == nullptr ||
        !slot->handle.compare_exchange_strong(number, 0, std::memory_order_seq_cst))
      return nullptr;
    // Pairs with use() and with the end of a Use.
    while (const std::uint32_t users = slot->users.load(std::memory_order_seq_cst))
      slot->users.wait(users, std::memory_order_seq_cst);
    std::unique_ptr<T> object = std::move(slot->object);
    slot->is_taken.store(false, std::memory_order_release);  // pairs with add()
    const auto index = static_cast<std::uint32_t>(number & 0xffff);
    if (index < first_.load(std::memory_order_relaxed))
      first_.store(index, std::memory_order_relaxed);
    return object;
  }

  std::vector<Handle> handles() const {
    std::vector<Handle> all;
    for (std::uint32_t index = 0; index < kSlots; ++index) {
      const Slot* slot = slot_at(index);
      if (slot == nullptr) break;
      if (const auto handle = slot->handle.load(std::memory_order_acquire); handle != 0)
        all.push_back(as_handle(handle));
    }
    return all;
  }

  // Removes the objects for which `matches` is true.
  template <typename Matches>
  void remove_if(Matches matches) {
    const auto is_one = [this, &matches](Handle handle) {
      const Use held = use(handle);
      return held && matches(std::as_const(*held));
    };
    for (const Handle handle : handles())
      if (is_one(handle)) remove(handle);
  }
  void clear() {
    for (const Handle handle : handles()) remove(handle);
  }

 private:
  // Chunks are made in their order, each when its first slot is needed. So a table for many handles
  // costs next to nothing while there are few.
  static constexpr std::uint32_t kChunkSlots = kSlots < 256 ? kSlots : 256;
  using Chunk = std::array<Slot, kChunkSlots>;

  static Handle as_handle(std::uint64_t number) { return reinterpret_cast<Handle>(number); }
  static std::uint64_t as_number(Given handle) { return reinterpret_cast<std::uint64_t>(handle); }

  // Null when it was never made.
  Slot* slot_at(std::uint32_t index) const {
    // Pairs with make_slot().
    Chunk* chunk = chunks_[index / kChunkSlots].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[index % kChunkSlots];
  }
  Slot& make_slot(std::uint32_t index) {
    auto& place = chunks_[index / kChunkSlots];
    Chunk* there = place.load(std::memory_order_acquire);
    if (there == nullptr) {
      auto made = std::make_unique<Chunk>();
      if (place.compare_exchange_strong(there, made.get(), std::memory_order_acq_rel))
        there = made.release();
    }
    return (*there)[index % kChunkSlots];
  }
  // Null when no handle can be this number.
  Slot* slot_of(std::uint64_t number) const {
    if (number == 0) return nullptr;  // which a free slot has
    if (!kIsNumber && number >> 48 != static_cast<std::uint64_t>(kind)) return nullptr;
    if ((number & 0xffff) >= kSlots) return nullptr;
    return slot_at(static_cast<std::uint32_t>(number & 0xffff));
  }

  std::array<std::atomic<Chunk*>, kSlots / kChunkSlots> chunks_{};
  std::atomic<std::uint32_t> first_{0};  // where a free slot may be; none is before it, most times
};

}  // namespace memspan::capi
