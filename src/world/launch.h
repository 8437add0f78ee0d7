// SPDX-License-Identifier: Apache-2.0
// What a launcher on this host hands to each process that it starts: one environment variable
// that names inherited descriptors. Nothing is exchanged at start: the board and the heap are
// there already, and the store is a socket pair.
#pragma once

#include <optional>
#include <string>

#include "core/status.h"

namespace memspan {

inline constexpr const char* kLaunchVariable = "MEMSPAN_LAUNCH";

// A value. Descriptors are numbers in the process that reads it; it does not own them.
struct Launch {
  int rank = 0;
  int size = 1;
  int board = -1;  // memfd of the Board, which carries the job's secret too
  int heap = -1;   // memfd of all symmetric heaps of the host, rank r at r * Board heap_stride
  int store = -1;  // stream socket to the launcher's StoreServer

  // "1:RANK:SIZE:BOARD:HEAP:STORE", the value of kLaunchVariable.
  std::string encode() const;
  static Result<Launch> decode(const std::string& text);
  // nullopt when the variable is not set.
  static Result<std::optional<Launch>> from_environment();
};

}  // namespace memspan
