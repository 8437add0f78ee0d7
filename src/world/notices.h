// SPDX-License-Identifier: Apache-2.0
// What the nodes of a job tell each other about its PEs: the slots of a node segment that stand for
// PEs of other nodes are written from these. The process that saw it tells one living PE of each
// other node, and that one writes it into its node's segment, which wakes whoever waits there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/status.h"
#include "node/segment.h"
#include "world/messages.h"
#include "world/node_map.h"

namespace memspan {

// A value.
struct Notice {
  enum class Kind : std::uint64_t {
    kLoss = 1,       // `value`: PeerSlot::wait_status
    kDeparture = 2,  // NodeSegment::mark_departed()
    kEnd = 3,        // `value`: EndKind; World::end()
    kExit = 4,       // `value`: the code; NodeSegment::request_exit()
    kGreeting = 5,   // nothing: so that there is a connection, whose end tells something
  };
  Kind kind = Kind::kLoss;
  int rank = 0;
  std::int32_t value = 0;
  std::uint32_t generation = 0;  // of the membership that ended; of kEnded

  MessageKey key() const;
  std::vector<std::byte> bytes() const;
  // Of what a notice handler gets; nullopt when it is no notice.
  static std::optional<Notice> decode(std::uint64_t id, std::uint64_t sequence,
                                      std::span<const std::byte> bytes);
};

// Writes it into the segment. Thread-safe.
void apply(const Notice& notice, const NodeSegment& segment);

// Sends a notice to one PE of every node but this process's own, over `messages`: to the first that
// lives and can be reached. Thread-safe; does not wait.
void tell_other_nodes(const Notice& notice, int self, const NodeMap& nodes,
                      const WaitContext& waiting, Messages& messages);

}  // namespace memspan
