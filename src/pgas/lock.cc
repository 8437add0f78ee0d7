// SPDX-License-Identifier: Apache-2.0
#include "pgas/lock.h"

#include "pgas/rma.h"

namespace memspan::inline pgas {
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
        me_(static_cast<std::uint32_t>(world.rank()) + 1) {}

  std::uint32_t node() const { return __atomic_load_n(node_, __ATOMIC_ACQUIRE); }
  // False when another thread of this process is in the queue.
  bool enter(std::uint32_t state) {
    std::uint32_t free = 0;
    return __atomic_compare_exchange_n(node_, &free, state, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
  }
  void leave() { __atomic_store_n(node_, 0, __ATOMIC_RELEASE); }

  // Swaps the tail, or compares it with `from` and swaps it; returns what it was.
  template <AtomicKind kind>
  Result<std::uint32_t> change_tail(std::uint32_t to, std::uint32_t from = 0) {
    std::uint32_t before = 0;
    MEMSPAN_PASS(atomic<kind>(table_, table_.route_of(tail_, kHome), tail_, to, from, &before));
    return before;
  }
  // Sets or clears bits of the node of a process, by its number plus one.
  template <AtomicKind kind>
  Status change_node(std::uint32_t number, std::uint32_t bits) {
    const Route& route = table_.route_of(node_, static_cast<int>(number) - 1);
    return atomic<kind, std::uint32_t>(table_, route, node_, bits, 0, nullptr);
  }
  Status pass_on(std::uint32_t next) { return change_node<AtomicKind::kAnd>(next, ~kWaits); }
  std::uint32_t me() const { return me_; }

 private:
  const RouteTable& table_;
  std::uint32_t* node_;
  std::uint32_t* tail_;
  std::uint32_t me_;  // this process's number plus one
};

template <typename Ready>
Status wait(World& world, const char* what, Ready ready) {
  return wait_for(world.waiting(), WaitsFor::kData, what, Deadline::never(), ready);
}

}  // namespace

Status lock(World& world, const char* what, std::uint64_t* lock) {
  Queue queue(world, lock);
  MEMSPAN_PASS(wait(world, what, [&] { return queue.enter(kBusy | kWaits); }));
  MEMSPAN_TRY_ASSIGN(const std::uint32_t before, queue.change_tail<AtomicKind::kSwap>(queue.me()),
                     "queueing");
  if (before == 0) return queue.pass_on(queue.me());
  MEMSPAN_PASS(queue.change_node<AtomicKind::kOr>(before, queue.me()));
  return wait(world, what, [&] { return (queue.node() & kWaits) == 0; });
}

Result<bool> try_lock(World& world, std::uint64_t* lock) {
  Queue queue(world, lock);
  if (!queue.enter(kBusy)) return false;
  MEMSPAN_TRY_ASSIGN(const std::uint32_t before,
                     queue.change_tail<AtomicKind::kCompareSwap>(queue.me(), 0), "taking the lock");
  if (before != 0) queue.leave();
  return before == 0;
}

Status unlock(World& world, const char* what, std::uint64_t* lock) {
  Queue queue(world, lock);
  if ((queue.node() & kBusy) == 0 || (queue.node() & kWaits) != 0)
    return {Code::kInvalidArgument, "this process does not have the lock"};
  if ((queue.node() & kNext) == 0) {
    MEMSPAN_TRY_ASSIGN(const std::uint32_t last,
                       queue.change_tail<AtomicKind::kCompareSwap>(0, queue.me()),
                       "leaving the queue");
    if (last == queue.me()) {
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

}  // namespace memspan::inline pgas
