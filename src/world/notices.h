// SPDX-License-Identifier: Apache-2.0
// What the nodes of a job tell each other about its PEs: the slots of a node segment that stand for
// PEs of other nodes are written from these. A node is told through one of its living PEs, which
// passes it on over the overlay network (node_overlay.h) and then writes it into its node's
// segment, which wakes whoever waits there.
//
// Losses, departures and requests to exit are flooded: they have to arrive although nodes die. The
// end of a PE goes over a tree, since each PE tells it: when a node dies that may have had some to
// pass on, all tell theirs again (kRepeatEnds).
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
    kGreeting = 5,    // nothing: so that there is a connection, whose end tells something
    kRepeatEnds = 6,  // `rank` died after its end; once for each rank
  };
  Kind kind = Kind::kLoss;
  int rank = 0;
  std::int32_t value = 0;
  std::uint32_t generation = 0;  // of the membership that ended; of kEnd
  std::int32_t span = 0;         // nodes that the receiver passes it on to; of kEnd

  MessageKey key() const;
  std::vector<std::byte> bytes() const;
  // Of what a notice handler gets; nullopt when it is no notice.
  static std::optional<Notice> decode(std::uint64_t id, std::uint64_t sequence,
                                      std::span<const std::byte> bytes);
};

// Writes it into the segment. Thread-safe.
void apply(const Notice& notice, const NodeSegment& segment);

// Whether the segment does not show yet what a notice of a loss, a departure or a request to exit
// says.
bool is_news(const Notice& notice, const NodeSegment& segment);

// The losses and departures in the segment, in the order in which they were noted.
std::vector<Notice> losses(const NodeSegment& segment);

// The overlay as the PE `self` of the job sees it: nodes live that have a PE which did not die. One
// that has begun to leave still passes things on, until all have. Thread-safe; does not wait.
class NoticeRoutes {
 public:
  NoticeRoutes(int self, const NodeMap& nodes, const WaitContext& waiting, Messages& messages)
      : self_(self), nodes_(nodes), waiting_(waiting), messages_(messages) {}

  // With whom this PE's node keeps connections: the first living PE of each of its neighbors.
  std::vector<int> watched() const;
  // To the neighbors of this PE's node.
  void flood(const Notice& notice) const;
  // To the `notice.span` nodes before this PE's.
  void pass_on(const Notice& notice) const;
  // To all other nodes, by the one or the other.
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
