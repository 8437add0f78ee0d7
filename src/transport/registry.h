// SPDX-License-Identifier: Apache-2.0
// All transports, best first, and the choice for two processes: the first one that is allowed
// (MEMSPAN_TRANSPORT, a list with commas) and reaches the peer. A new transport is one row in
// registry.cc.
#pragma once

#include <span>
#include <vector>

#include "core/status.h"

namespace memspan::inline transport {

// The relation of two processes. The caller knows the job and sets it.
struct Pair {
  std::string from;  // for messages: "PE 0 on host a"
  std::string to;
  bool same_node = false;
};

struct TransportEntry {
  std::string_view name;
  std::string_view what;    // one line
  bool is_for_one_node;     // it reaches only peers on the same node
  std::string_view reason;  // why it reaches the peer
};

std::span<const TransportEntry> transports();

struct TransportChoice {
  std::string_view name;
  std::string why;  // "mapped: both are on one node"
};

// A value.
class AllowedTransports {
 public:
  // The transports that `text` lists; all if empty. kInvalidArgument names an unknown one and the
  // known ones.
  static Result<AllowedTransports> parse(std::string_view text);
  // MEMSPAN_TRANSPORT.
  static Result<AllowedTransports> from_environment();

  bool has(std::string_view name) const;
  // `candidates` are the suitable names, tried in the order of transports(). kUnreachable names
  // both processes and the reason against each transport.
  Result<TransportChoice> choose(const Pair& pair,
                                 std::span<const std::string_view> candidates) const;

 private:
  std::vector<std::string> names_;  // empty: all
};

}  // namespace memspan::inline transport
