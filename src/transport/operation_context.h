// SPDX-License-Identifier: Apache-2.0
// Tracks outstanding operations: it remembers the links used since its last quiet, so quiet and
// fence ask only those. It costs nothing if all accesses were direct.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"

namespace memspan {

class Link;

// Thread-safe: a context that several threads share completes the operations of all of them. A link
// must outlive the contexts that used it.
class OperationContext {
 public:
  OperationContext();
  OperationContext(const OperationContext&) = delete;
  OperationContext& operator=(const OperationContext&) = delete;

  // Identifies it in messages to a peer; unique in this process.
  std::uint64_t id() const { return id_; }
  // How long one call that begins from now on may wait; Duration::max(): no limit.
  Duration limit() const { return limit_.load(std::memory_order_relaxed); }
  void set_limit(Duration limit) { limit_.store(limit, std::memory_order_relaxed); }
  Deadline deadline() const {
    const Duration most = limit();
    return most == Duration::max() ? Deadline::never() : Deadline::after(most);
  }

  // Link::fence() of all used links.
  Status fence();
  // Link::quiet() of all used links, in parallel. Returns the first failure.
  Status quiet();

 private:
  friend class Link;
  struct Use {
    Link* link;
    std::uint64_t count;  // calls so far
  };

  void use(Link& link);
  std::vector<Use> uses();
  // Forgets the link, unless it was used again.
  void forget(const Use& use);

  const std::uint64_t id_;
  std::atomic<Duration> limit_{Duration::max()};
  Mutex mutex_;
  std::vector<Use> used_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan
