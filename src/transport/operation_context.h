// SPDX-License-Identifier: Apache-2.0
// Owns what is outstanding: it remembers the links that were used since its last quiet, so that
// quiet and fence ask those and no others. Costs nothing where all was direct.
#pragma once

#include <cstdint>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"

namespace memspan {

class Link;

// Thread-safe: a context that several threads share completes what all of them began. It must not
// be used after a link that it used is destroyed.
class OperationContext {
 public:
  OperationContext();
  OperationContext(const OperationContext&) = delete;
  OperationContext& operator=(const OperationContext&) = delete;

  // Names it in messages to a peer; no two of a process are the same.
  std::uint64_t id() const { return id_; }
  // How long one call may wait; Duration::max() where only a loss of the peer ends it. Set it
  // while no call runs.
  Duration limit() const { return limit_; }
  void set_limit(Duration limit) { limit_ = limit; }
  Deadline deadline() const {
    return limit_ == Duration::max() ? Deadline::never() : Deadline::after(limit_);
  }

  // Order at each peer that was used.
  Status fence();
  // Everything is applied, and gets are here. All peers are asked at once. The first failure.
  Status quiet();

 private:
  friend class Link;
  void use(Link& link);

  const std::uint64_t id_;
  Duration limit_ = Duration::max();
  Mutex mutex_;
  std::vector<Link*> used_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan
