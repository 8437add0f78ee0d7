// SPDX-License-Identifier: Apache-2.0
#include "launcher/nodes.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/cpu.h"
#include "core/pages.h"
#include "launcher/job.h"
#include "memory/address_plan.h"
#include "node/process_watch.h"
#include "world/launch.h"

namespace memspan::launcher {
namespace {

std::uint64_t memory_of_host() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * page_size();
}

}  // namespace

Result<Nodes> Nodes::make(const std::vector<int>& hosts, int processes) {
  Launch launch;
  launch.size = processes;
  launch.hosts = hosts;
  Nodes nodes(launch.nodes());
  // Simulated hosts share the cores of this one.
  const bool oversubscribed = processes > usable_cores();
  for (int node = 0; node < nodes.map_.count(); ++node)
    MEMSPAN_PASS(nodes.add(node, oversubscribed));
  // One job, as on real hosts.
  const auto& secret = nodes.nodes_.front().segment.header().secret;
  nodes.set_secret(std::string(secret, sizeof secret));
  return nodes;
}

Result<Nodes> Nodes::make_one(NodeMap map, int node) {
  Nodes nodes(std::move(map));
  MEMSPAN_PASS(nodes.add(node, nodes.map_.peers_in(node) > usable_cores()));
  return nodes;
}

Status Nodes::add(int node, bool oversubscribed) {
  const std::uint64_t stride = heap_file_stride(memory_of_host());
  MEMSPAN_TRY_ASSIGN(NodeSegment segment, NodeSegment::create(map_.peers(), stride, oversubscribed),
                     "preparing the job");
  const auto near = static_cast<std::uint64_t>(map_.peers_in(node));
  MEMSPAN_TRY_ASSIGN(const Pages heap, Pages::create(stride * near, "memspan-heap"),
                     "making the heaps");
  MEMSPAN_TRY_ASSIGN(Fd for_segment, duplicate_high(segment.descriptor()), "preparing the job");
  MEMSPAN_TRY_ASSIGN(Fd for_heap, duplicate_high(heap.descriptor()), "preparing the job");
  nodes_.push_back({std::move(segment), std::move(for_segment), std::move(for_heap)});
  return Status::ok();
}

void Nodes::set_secret(const std::string& secret) const {
  for (const Node& node : nodes_) {
    NodeHeader& header = node.segment.header();
    std::memcpy(header.secret, secret.data(), std::min(secret.size(), sizeof header.secret));
  }
}

bool Nodes::mark_lost(int rank, int wait_status) const {
  const bool is_news = segment_of(rank).mark_lost(rank, wait_status);
  tell_other_nodes(rank);
  return is_news;
}

bool Nodes::mark_replaced(int rank) const {
  const bool is_news = memspan::mark_replaced(segment_of(rank), rank);
  if (is_news) tell_other_nodes(rank);
  return is_news;
}

// Copies a loss from the process's own node, whichever process noted it.
void Nodes::tell_other_nodes(int rank) const {
  const PeerSlot& own = slot(rank);
  if (own.state.load(std::memory_order_acquire) != PeerState::kLost) return;
  for (const Node& node : nodes_) {
    if (&node == &node_of(rank)) continue;
    node.segment.peer(rank).pid.store(own.pid.load(std::memory_order_relaxed),
                                      std::memory_order_relaxed);
    node.segment.mark_lost(rank, own.wait_status.load(std::memory_order_relaxed));
  }
}

std::optional<ExitRequest> Nodes::exit_request() const {
  for (const Node& node : nodes_) {
    const NodeHeader& header = node.segment.header();
    // Pairs with request_exit().
    if (header.exit_requested.load(std::memory_order_acquire) != 2) continue;
    const ExitRequest request{header.exit_rank.load(std::memory_order_relaxed),
                              header.exit_code.load(std::memory_order_relaxed)};
    for (const Node& other : nodes_) other.segment.request_exit(request.rank, request.code);
    return request;
  }
  return std::nullopt;
}

bool Nodes::is_library_seen() const {
  for (const Node& node : nodes_)
    if (node.segment.header().library_seen.load(std::memory_order_relaxed) != 0) return true;
  return false;
}

}  // namespace memspan::launcher
