// SPDX-License-Identifier: Apache-2.0
// The objects of the MemFabric face, by handle. Other than in a HandleTable, an object may be
// removed while other threads use it: the removal waits for them, and who comes later does not find
// it.
//
//   handle    63      48 47          16 15    0
//            |   kind   |  generation  | slot  |     kinds keep one part's handles from another's
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace memspan::capi {

enum class ObjectKind : std::uint64_t {
  kPool = 1,
  kSpace = 2,
  kEndpoint = 3,
  kStream = 4,
  kRequest = 5,
  kGroup = 6,
  kMessage = 7
};

// Owns its objects. Thread-safe; use() takes no lock.
template <typename T, ObjectKind kind, std::uint32_t kSlots = 4096>
class ObjectTable {
  static_assert(kSlots <= 1u << 16, "a handle has 16 bits for the slot");
  struct Slot {
    std::atomic<std::uint64_t> handle{0};  // 0: nobody may use it
    std::atomic<std::uint32_t> users{0};
    std::atomic<bool> is_taken{false};
    std::uint64_t generation = 0;  // of who took it
    std::unique_ptr<T> object;     // the same
  };

 public:
  static constexpr std::uint32_t kMost = kSlots;

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
    friend class ObjectTable;
    explicit Use(Slot* slot) : slot_(slot) {}
    Slot* slot_ = nullptr;
  };

  // Null when the table is full.
  void* add(std::unique_ptr<T> object) {
    for (std::uint32_t index = 0; index < kSlots; ++index) {
      Slot& slot = slots_[index];
      // The exchange pairs with remove(), whose slot this may be now; the load only saves it.
      if (slot.is_taken.load(std::memory_order_relaxed) ||
          slot.is_taken.exchange(true, std::memory_order_acquire))
        continue;
      slot.object = std::move(object);
      const std::uint64_t handle =
          static_cast<std::uint64_t>(kind) << 48 | (++slot.generation & 0xffff'ffff) << 16 | index;
      slot.handle.store(handle, std::memory_order_seq_cst);  // pairs with use() and handles()
      return reinterpret_cast<void*>(handle);
    }
    return nullptr;
  }

  Use use(const void* handle) {
    Slot* slot = find(handle);
    if (slot == nullptr) return Use();
    // Sequentially consistent, as remove()'s: either it sees this user, or this sees the handle
    // gone.
    slot->users.fetch_add(1, std::memory_order_seq_cst);
    Use held(slot);
    if (slot->handle.load(std::memory_order_seq_cst) != reinterpret_cast<std::uint64_t>(handle))
      return Use();
    return held;
  }

  // Waits until nobody uses it any more, which its users must not do. Null when the handle names
  // none.
  std::unique_ptr<T> remove(const void* handle) {
    Slot* slot = find(handle);
    auto number = reinterpret_cast<std::uint64_t>(handle);
    if (slot == nullptr ||
        !slot->handle.compare_exchange_strong(number, 0, std::memory_order_seq_cst))
      return nullptr;
    // Pairs with use() and with the end of a Use.
    while (const std::uint32_t users = slot->users.load(std::memory_order_seq_cst))
      slot->users.wait(users, std::memory_order_seq_cst);
    std::unique_ptr<T> object = std::move(slot->object);
    slot->is_taken.store(false, std::memory_order_release);  // pairs with add()
    return object;
  }

  std::vector<void*> handles() const {
    std::vector<void*> all;
    for (const Slot& slot : slots_)
      if (const auto handle = slot.handle.load(std::memory_order_acquire); handle != 0)
        all.push_back(reinterpret_cast<void*>(handle));
    return all;
  }

 private:
  Slot* find(const void* handle) {
    const auto number = reinterpret_cast<std::uint64_t>(handle);
    if (number >> 48 != static_cast<std::uint64_t>(kind) || (number & 0xffff) >= kSlots)
      return nullptr;
    return &slots_[number & 0xffff];
  }

  std::array<Slot, kSlots> slots_;
};

}  // namespace memspan::capi
