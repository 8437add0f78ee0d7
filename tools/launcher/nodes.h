// SPDX-License-Identifier: Apache-2.0
// The nodes of a job that this process holds: this host, the simulated ones that --simulate-hosts
// makes of it, or one of several hosts. Each has its own node segment and memfd for heaps. A
// process writes its state to its own node's segment; the launcher writes to all of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/fd.h"
#include "core/status.h"
#include "node/segment.h"
#include "world/node_map.h"

namespace memspan::launcher {

// A request to end the job (shmem_global_exit).
struct ExitRequest {
  int rank = 0;
  int code = 0;
};

// Owns the job's shared memory. One thread at a time.
class Nodes {
 public:
  // `hosts` as Launch has them.
  static Result<Nodes> make(const std::vector<int>& hosts, int processes);
  // One of several hosts. PEs of the others also have slots in its segment.
  static Result<Nodes> make_one(NodeMap map, int node);

  // For the segments' headers, instead of a fresh one; as long as that.
  void set_secret(const std::string& secret) const;

  const NodeMap& map() const { return map_; }
  int size() const { return map_.peers(); }
  // The slot that `rank` itself writes.
  const PeerSlot& slot(int rank) const { return segment_of(rank).peer(rank); }
  const NodeSegment& segment_of(int rank) const { return node_of(rank).segment; }
  int segment_for_children(int rank) const { return node_of(rank).segment_descriptor.get(); }
  int heap_for_children(int rank) const { return node_of(rank).heap_descriptor.get(); }

  // As NodeSegment has it.
  bool mark_lost(int rank, int wait_status) const;
  // Notes as lost a process that runs another program than the one that joined (mark_replaced()).
  bool mark_replaced(int rank) const;
  // The first one that is seen; from then on every node knows of it.
  std::optional<ExitRequest> exit_request() const;
  bool is_library_seen() const;

 private:
  struct Node {
    NodeSegment segment;
    Fd segment_descriptor;
    Fd heap_descriptor;
  };
  explicit Nodes(NodeMap map) : map_(std::move(map)) {}
  Status add(int node, bool oversubscribed);
  const Node& node_of(int rank) const {
    return nodes_.size() == 1 ? nodes_[0] : nodes_[static_cast<std::size_t>(map_.node_of(rank))];
  }
  void tell_other_nodes(int rank) const;

  NodeMap map_;
  std::vector<Node> nodes_;
};

}  // namespace memspan::launcher
