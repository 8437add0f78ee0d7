// SPDX-License-Identifier: Apache-2.0
// Debug builds check that no thread blocks while it runs an engine, which owns connections of all
// peers (transport/message/engine.h).
#pragma once

#ifndef NDEBUG
#include "core/check.h"
#endif

namespace memspan {

// State of the calling thread.
class OnEngine {
 public:
#ifdef NDEBUG
  static void begin() {}
  static void end() {}
  static void check() {}
  static void check_may_block() {}
#else
  static void begin() {
    ++depth_;
  }
  static void end() {
    --depth_;
  }
  static void check() {
    MEMSPAN_CHECK(depth_ > 0);
  }
  // For calls that may block.
  static void check_may_block() {
    MEMSPAN_CHECK(depth_ == 0);
  }

 private:
  static inline thread_local int depth_ = 0;
#endif
};

}  // namespace memspan
