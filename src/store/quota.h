// SPDX-License-Identifier: Apache-2.0
// Limits of one store. A request beyond them returns kOutOfMemory and changes nothing.
#pragma once

#include <cstddef>

namespace memspan {

// A value.
struct StoreQuota {
  std::size_t keys = std::size_t{128} << 10;  // as many waits, groups and
                                              // unfinished ad-hoc all-gathers
  std::size_t bytes = std::size_t{1} << 30;   // of keys and values; as many again of
                                              // contributions
  std::size_t watches = 4096;
  // Memory used on behalf of one session, and of all (StoreCharges). One session's limit fits two
  // waits for as many keys as a request may name.
  std::size_t session = std::size_t{64} << 20;
  std::size_t sessions = std::size_t{512} << 20;
  // Unsent answers to all sessions; StorePatience limits those to one. Beyond it, the session with
  // the most ends.
  std::size_t queued = std::size_t{1} << 30;
};

}  // namespace memspan
