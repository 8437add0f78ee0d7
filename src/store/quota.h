// SPDX-License-Identifier: Apache-2.0
// How much one store holds. A request beyond it is kOutOfMemory and changes nothing.
#pragma once

#include <cstddef>

namespace memspan {

// A value.
struct StoreQuota {
  std::size_t keys = std::size_t{128} << 10;  // as many waits, groups and
                                              // ad-hoc all-gathers that are not over
  std::size_t bytes = std::size_t{1} << 30;   // of keys and values; as many again of what members
                                              // of groups bring
  std::size_t watches = 4096;
  // What is remembered for one session and for all of them (StoreCharges). A wait for the most keys
  // that a request may name fits twice into what one has.
  std::size_t session = std::size_t{64} << 20;
  std::size_t sessions = std::size_t{512} << 20;
  // Of answers that were not sent yet, to all sessions; StorePatience has the bound of one. Beyond
  // it the session with the most ends.
  std::size_t queued = std::size_t{1} << 30;
};

}  // namespace memspan
