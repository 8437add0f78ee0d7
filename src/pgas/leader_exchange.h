// SPDX-License-Identifier: Apache-2.0
// The exchange of a barrier among the leaders of a team's nodes (a node's first member) of the data
// that each node gathered.
//
//   members of a node -> lines in the node's sync area -> leader == messages == other leaders
#pragma once

#include <cstring>
#include <functional>
#include <span>

#include "pgas/team_members.h"

namespace memspan {

// The bytes of one node's members on their way to other leaders.
class LeaderExchange {
 public:
  using Block = std::vector<std::byte>;
  using Take = std::function<Status(int node, std::span<const std::byte>)>;
  template <typename T>
  static void append(Block& to, const T& value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    to.insert(to.end(), from, from + sizeof value);
  }
  // False if there are not as many bytes.
  template <typename T>
  static bool read(std::span<const std::byte>& from, T& value) {
    if (from.size() < sizeof value) return false;
    std::memcpy(&value, from.data(), sizeof value);
    from = from.subspan(sizeof value);
    return true;
  }
  // The barrier of a team on several nodes for which it is.
  struct Place {
    const TeamMembers& members;
    std::uint64_t sequence;
    const char* what;
    MessageKey key() const { return {MessageKind::kBarrier, members.id(), sequence}; }
  };
  // Gives take(node, block) the block of every other node; called by all leaders. Directly among
  // few nodes, by dissemination among many. kPeerLost: a member is gone whose node has not sent its
  // block. If another leader reported a failure (tell_failure), that one.
  static Status run(const Place& place, const Block& mine, const Take& take);
  // Sends a failure in place of this node's block. `peer` is the PE that is lost, or -1.
  static void tell_failure(const Place& place, Code code, int peer);
};

}  // namespace memspan
