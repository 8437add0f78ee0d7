// SPDX-License-Identifier: Apache-2.0
// The transports there are, best first, and which of them two processes use: the first that is
// allowed (MEMSPAN_TRANSPORT, a list with commas) and reaches. A new transport is one row here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace memspan {

// How two processes stand to each other. Set by who knows the job.
struct Pair {
  std::string from;  // for messages: "PE 0 on host a"
  std::string to;
  bool same_node = false;
  bool memory_is_mappable = true;  // the peer's memory lies in a file that this process can have
  std::string no_process_access;   // why process_vm_readv cannot reach the peer; empty if it can
  std::string no_message_address;  // why there is no address to connect to; empty if there is
};

struct TransportEntry {
  std::string_view name;
  std::string_view what;  // in a line
  // Why it does not reach, or ok. The message of ok's twin, why it does, is `reason`.
  Status (*reaches)(const Pair& pair);
  std::string_view reason;
};

std::span<const TransportEntry> transports();

struct TransportChoice {
  std::string_view name;
  std::string why;  // "mapped: both are on one node"
};

// A value.
class AllowedTransports {
 public:
  // All, or those that the text lists. kInvalidArgument names an unknown one and what there is.
  static Result<AllowedTransports> parse(std::string_view text);
  // MEMSPAN_TRANSPORT.
  static Result<AllowedTransports> from_environment();

  bool has(std::string_view name) const;
  // `candidates` are the names that serve the purpose, in the order of transports(). kUnreachable
  // names both processes and why each transport does not do.
  Result<TransportChoice> choose(const Pair& pair,
                                 std::span<const std::string_view> candidates) const;

 private:
  std::vector<std::string> names_;  // empty: all
};

}  // namespace memspan
