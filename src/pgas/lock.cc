// SPDX-License-Identifier: Apache-2.0
#include "pgas/lock.h"

#include "pgas/rma.h"

namespace memspan::pgas {
namespace {

constexpr std::uint32_t kBusy = 1u << 31;
constexpr std::uint32_t kWaits = 1u << 30;
constexpr std::uint32_t kNext = kWaits - 1;
constexpr int kHome = 0;  // whose copy of the tail counts

static_assert(std::endian::native == std::endian::little);

// The two halves of the word, each an atomic of its own.
class Queue {
 public:
  Queue(World& world, std::uint64_t* lock)
      : table_(world.routes()),
        node_(reinterpret_cast<std::uint32_t*>(lock)),
        tail_(node_ + 1),
        me_(static_cast<std::uint32_t>(world.rank())) {}

  std::uint32_t node() const { return __atomic_load_n(node_, __ATOMIC_ACQUIRE); }
  // False when another thread of this process is in the queue.
  bool enter(std::uint32_t state) {
    std::uint32_t free = 0;
    return __atomic_compare_exchange_n(node_, &free, state, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
  }
  void leave() { __atomic_store_n(node_, 0, __ATOMIC_RELEASE); }

  // The one before, plus one; 0 when the queue was empty.
  Result<std::uint32_t> append() {
    std::uint32_t before = 0;
    MEMSPAN_PASS(atomic<AtomicKind::kSwap>(table_, home(), tail_, me_ + 1, 0u, &before));
    return before;
  }
  // From `from` to `to`; false when it was something else.
  Result<bool> change_tail(std::uint32_t from, std::uint32_t to) {
    std::uint32_t before = 0;
    MEMSPAN_PASS(atomic<AtomicKind::kCompareSwap>(table_, home(), tail_, to, from, &before));
    return before == from;
  }
  Status stand_behind(std::uint32_t before) {
    return atomic<AtomicKind::kOr, std::uint32_t>(table_, to(before), node_, me_ + 1, 0, nullptr);
  }
  Status pass_on(std::uint32_t next) {
    return atomic<AtomicKind::kAnd, std::uint32_t>(table_, to(next), node_, ~kWaits, 0, nullptr);
  }
  std::uint32_t me() const { return me_ + 1; }

 private:
  const Route& home() const { return table_.route_of(tail_, kHome); }
  const Route& to(std::uint32_t number) const {
    return table_.route_of(node_, static_cast<int>(number) - 1);
  }

  const RouteTable& table_;
  std::uint32_t* node_;
  std::uint32_t* tail_;
  std::uint32_t me_;
};

template <typename Ready>
Status wait(World& world, const char* what, Ready ready) {
  return wait_for(world.waiting(), WaitsFor::kData, what, Deadline::never(), ready);
}

}  // namespace

Status lock(World& world, const char* what, std::uint64_t* lock) {
  Queue queue(world, lock);
  MEMSPAN_PASS(wait(world, what, [&] { return queue.enter(kBusy | kWaits); }));
  MEMSPAN_TRY_ASSIGN(const std::uint32_t before, queue.append(), "queueing");
  if (before == 0) return queue.pass_on(queue.me());
  MEMSPAN_PASS(queue.stand_behind(before));
  return wait(world, what, [&] { return (queue.node() & kWaits) == 0; });
}

Result<bool> try_lock(World& world, std::uint64_t* lock) {
  Queue queue(world, lock);
  if (!queue.enter(kBusy)) return false;
  MEMSPAN_TRY_ASSIGN(const bool is_ours, queue.change_tail(0, queue.me()), "taking the lock");
  if (!is_ours) queue.leave();
  return is_ours;
}

Status unlock(World& world, const char* what, std::uint64_t* lock) {
  Queue queue(world, lock);
  if ((queue.node() & kBusy) == 0 || (queue.node() & kWaits) != 0)
    return {Code::kInvalidArgument, "this process does not have the lock"};
  if ((queue.node() & kNext) == 0) {
    MEMSPAN_TRY_ASSIGN(const bool was_last, queue.change_tail(queue.me(), 0), "leaving the queue");
    if (was_last) {
      queue.leave();
      return Status::ok();
    }
    // Another process is between taking its place in the queue and announcing itself to this one.
    MEMSPAN_PASS(wait(world, what, [&] { return (queue.node() & kNext) != 0; }));
  }
  const std::uint32_t next = queue.node() & kNext;
  queue.leave();
  return queue.pass_on(next);
}

}  // namespace memspan::pgas
