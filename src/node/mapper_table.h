// SPDX-License-Identifier: Apache-2.0
// The mapper table of a member, its owner: shared memory with two words for each other member. A
// word holds the number of a join, which no other join has, or 0.
//
//   | event count | rank 0: mapped by, admitted | rank 1: mapped by, admitted | ...
//
//   mapped by   The other member sets it while it has the owner's memory mapped. A join waits until
//               the words are set, a leave until they are cleared, without the store. A member
//               that died may leave its word set.
//   admitted    The owner sets it to the join that may copy from and to the owner's memory. When
//               the store gives a rank away, the owner withdraws the admission, even if the former
//               member is stopped: each later piece that this member copies finds another number.
#pragma once

#include <fmt/format.h>

#include "device/reservation.h"
#include "node/event_count.h"

namespace memspan::inline node {

// The right of a join to copy from and to the memory of a table's owner. A value, as valid as the
// table.
struct Admission {
  const std::atomic<std::uint64_t>* word;
  std::uint64_t join;

  // To a process's own memory.
  static Admission of_owner() {
    static constexpr std::atomic<std::uint64_t> kNoJoin{0};
    return {&kNoJoin, 0};
  }
  // One load, because each piece of a copy asks.
  bool is_valid() const { return word->load(std::memory_order_relaxed) == join; }
};

// Owns its mapping. Move-only; thread-safe.
class MapperTable {
 public:
  static Result<MapperTable> create(std::uint32_t ranks) {
    MEMSPAN_PASS_ASSIGN(Pages pages, Pages::create(bytes_for(ranks), "memspan-mappers"));
    return map(std::move(pages), ranks);
  }
  // Opens another member's table, from duplicate(). kInvalidArgument if it is too small.
  static Result<MapperTable> open(Fd descriptor, std::uint32_t ranks) {
    MEMSPAN_PASS_ASSIGN(Pages pages, Pages::adopt(std::move(descriptor)));
    return map(std::move(pages), ranks);
  }
  Result<Fd> duplicate() const { return pages_.duplicate(); }

  // A thread that sees the word also sees everything this thread did before.
  void set_mapped(std::uint32_t rank, std::uint64_t join) {
    words(rank).mapped_by.store(join, std::memory_order_release);  // pairs with mapped_by()
    notify();
  }
  // Clears the word, unless another join has set it since.
  void clear_mapped(std::uint32_t rank, std::uint64_t join) {
    words(rank).mapped_by.compare_exchange_strong(join, 0, std::memory_order_release,
                                                  std::memory_order_relaxed);
    notify();
  }
  std::uint64_t mapped_by(std::uint32_t rank) const {
    return words(rank).mapped_by.load(std::memory_order_acquire);
  }

  // The value of `admitted` after the owner saw the end of the last join.
  static constexpr std::uint64_t kEnded = ~std::uint64_t{0};
  // For the owner: a join, kEnded, or 0 for neither.
  void admit(std::uint32_t rank, std::uint64_t join) {
    words(rank).admitted.store(join, std::memory_order_release);  // pairs with admitted()
    notify();
  }
  std::uint64_t admitted(std::uint32_t rank) const {
    return words(rank).admitted.load(std::memory_order_acquire);
  }
  Admission admission(std::uint32_t rank, std::uint64_t join) const {
    return {&words(rank).admitted, join};
  }

  // Waits until ready(), which looks at the words, is true. False when the deadline has passed or
  // the thread is interrupted.
  template <typename Ready>
  bool wait(const Deadline& deadline, Ready ready) {
    return await_event(changes(), deadline, ready);
  }
  // Lets all waits look again.
  void notify() { memspan::notify(changes()); }

 private:
  MapperTable(Pages pages, Reservation range)
      : pages_(std::move(pages)), range_(std::move(range)) {}
  static Result<MapperTable> map(Pages pages, std::uint32_t ranks) {
    if (pages.bytes() < bytes_for(ranks))
      return Status(Code::kInvalidArgument, fmt::format("a mapper table of {} bytes, {} are needed",
                                                        pages.bytes(), bytes_for(ranks)));
    MEMSPAN_PASS_ASSIGN(Reservation range, Reservation::of(pages));
    return MapperTable(std::move(pages), std::move(range));
  }
  EventCount& changes() const { return *reinterpret_cast<EventCount*>(range_.base()); }
  struct Words {
    std::atomic<std::uint64_t> mapped_by;
    std::atomic<std::uint64_t> admitted;
  };
  static_assert(sizeof(Words) == 16 && std::atomic<std::uint64_t>::is_always_lock_free);
  static std::size_t bytes_for(std::uint32_t ranks) {
    return sizeof(EventCount) + std::size_t{ranks} * sizeof(Words);
  }
  Words& words(std::uint32_t rank) const {
    return reinterpret_cast<Words*>(range_.base() + sizeof(EventCount))[rank];
  }

  Pages pages_;
  Reservation range_;
};

}  // namespace memspan::inline node
