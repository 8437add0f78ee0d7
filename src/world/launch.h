// SPDX-License-Identifier: Apache-2.0
// A launcher on this host hands each process that it starts one environment variable, which names
// inherited descriptors. Nothing is exchanged at start: the node segment and the heap already
// exist, and the store is a socket pair. In a job on several hosts the store has an address, and
// its secret is the one in the node segment.
#pragma once

#include "core/status.h"
#include "world/node_map.h"

namespace memspan::inline world {

inline constexpr const char* kLaunchVariable = "MEMSPAN_LAUNCH";
inline constexpr const char* kDuplicating = "duplicating a descriptor of the launcher";

// A value. Descriptors are numbers in the process that reads it; it does not own them.
struct Launch {
  int rank = 0;
  int size = 1;
  int segment = -1;  // memfd of the NodeSegment, which also carries the job's secret
  int heap = -1;     // memfd of the heaps of the node's PEs: index i at i * NodeSegment heap_stride
  int store = -1;    // stream socket to the launcher's StoreServer
  // How many processes each host has, in the order of ranks; empty: all are on one.
  std::vector<int> hosts = {};
  // For hosts that are not simulated: their names, and the store's URL.
  std::vector<std::string> names = {};
  std::string store_url = {};

  bool is_network() const { return !names.empty(); }
  NodeMap nodes() const;
  // "2:RANK:SIZE:SEGMENT:HEAP:STORE:HOSTS", the value of kLaunchVariable; HOSTS as "2+2", or empty,
  // or "2+2|NAME,NAME|URL".
  std::string encode() const;
  static Result<Launch> decode(const std::string& text);
  // nullopt when the variable is not set.
  static Result<std::optional<Launch>> from_environment();
};

// "2+1" as {2, 1}; kInvalidArgument when it is not numbers above 0 with "+" in between.
Result<std::vector<int>> parse_host_sizes(const char* what, std::string_view text);
std::string format_host_sizes(const std::vector<int>& sizes);

// The value of MEMSPAN_HOST_ID on the simulated host with this number.
std::string simulated_host(int number);

}  // namespace memspan::inline world
