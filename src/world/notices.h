// SPDX-License-Identifier: Apache-2.0
// Notices between the nodes of a job about its PEs. They update the slots of a node segment that
// stand for PEs of other nodes. A node gets a notice through one of its living PEs. That PE passes
// it on over the overlay network (node_overlay.h) and then writes it into its node's segment, which
// wakes waiting threads.
//
// Losses, departures and requests to exit are flooded, because they must arrive even if nodes die.
// The end of a PE uses a tree, because every PE sends one. If a node dies that may have had ends to
// pass on, all send theirs again (kRepeatEnds).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "node/segment.h"
#include "world/messages.h"
#include "world/node_map.h"

namespace memspan {

// A value.
struct Notice {
  enum class Kind : std::uint64_t {
    kLoss = 1,        // `value`: PeerSlot::wait_status
    kDeparture = 2,   // NodeSegment::mark_departed()
    kEnd = 3,         // `value`: EndKind; World::end()
    kExit = 4,        // `value`: the code; NodeSegment::request_exit()
    kGreeting = 5,    // no content: opens a connection, whose end is noticed
    kRepeatEnds = 6,  // `rank` died after its end; once for each rank
  };
  Kind kind = Kind::kLoss;
  int rank = 0;
  std::int32_t value = 0;
  std::uint32_t generation = 0;  // of the membership that ended; of kEnd
  std::int32_t span = 0;         // nodes that the receiver passes it on to; of kEnd

  MessageKey key() const;
  std::vector<std::byte> bytes() const;
  // Decodes the arguments of a notice handler; nullopt if they are not a notice.
  static std::optional<Notice> decode(std::uint64_t id, std::uint64_t sequence,
                                      std::span<const std::byte> bytes);
};

// Writes it into the segment. Thread-safe.
void apply(const Notice& notice, const NodeSegment& segment);

// Whether a loss, a departure or a request to exit is not in the segment yet; false for other
// kinds.
bool is_news(const Notice& notice, const NodeSegment& segment);

// The losses and departures in the segment, in the order in which they were noted.
std::vector<Notice> losses(const NodeSegment& segment);

// The overlay as the PE `self` sees it: a node lives if one of its PEs is not dead. A PE that has
// begun to leave still passes notices on, until all have. Thread-safe; does not wait.
class NoticeRoutes {
 public:
  NoticeRoutes(int self, const NodeMap& nodes, const WaitContext& waiting, Messages& messages)
      : self_(self), nodes_(nodes), waiting_(waiting), messages_(messages) {}

  // The peers of this node's connections: the first living PE of each of its neighbors.
  std::vector<int> watched() const;
  // To the neighbors of this PE's node.
  void flood(const Notice& notice) const;
  // To the `notice.span` nodes before this PE's.
  void pass_on(const Notice& notice) const;
  // The losses and departures that this PE knows of, to a node of which a PE was lost: that PE may
  // have been the one to which they went.
  void repeat_losses(int node) const;
  // Sends it to all other nodes, by flood() or pass_on().
  void tell(Notice notice) const;

 private:
  // -1: none. `besides` counts as dead.
  int first_living(int node, int besides = -1) const;
  bool send(int node, const Notice& notice) const;

  const int self_;
  const NodeMap& nodes_;
  const WaitContext& waiting_;
  Messages& messages_;
};

}  // namespace memspan
