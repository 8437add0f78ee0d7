// SPDX-License-Identifier: Apache-2.0
#include "top/view.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "node/host_identity.h"

namespace memspan::top {
namespace {

std::string state_of(const ProcessSeen& seen) {
  if (seen.state == 'T' || seen.state == 't') return "stopped";
  if (!seen.counters.waiting.empty()) return "waits";
  return seen.state == 'R' ? "runs" : "sleeps";
}

// Of a rank of which no process is seen.
std::string state_of(const SlotSeen& peer) {
  switch (peer.state) {
    case PeerState::kAbsent:
      return "absent";  // not started yet, or on another host
    case PeerState::kJoined:
      return "unseen";
    case PeerState::kLeft:
      return "left";
    case PeerState::kLost:
      return "lost";
  }
  return "unknown";
}

double calls_of(const CountersSeen& seen) {
  double sum = 0;
  for (const CallCount& count : seen.calls) sum += static_cast<double>(count.calls);
  return sum;
}

double bytes_of(const CountersSeen& seen) {
  double sum = 0;
  for (const CallCount& count : seen.calls) sum += static_cast<double>(count.bytes);
  return sum;
}

// What a key sorts by, the largest first.
double weight_of(const Row& row, Order order) {
  if (!row.rates) return 0;
  switch (order) {
    case Order::kCalls:
      return row.rates->calls;
    case Order::kBytes:
      return row.rates->bytes;
    case Order::kWaits:
      return row.rates->waits;
    case Order::kRank:
      break;
  }
  return 0;
}

void add_unseen_ranks(Group& group, const SegmentSeen& node) {
  std::vector<bool> is_seen(static_cast<std::size_t>(std::max(group.size, 0)));
  for (const Row& row : group.rows)
    if (row.member.rank >= 0 && row.member.rank < group.size)
      is_seen[static_cast<std::size_t>(row.member.rank)] = true;
  for (std::size_t rank = 0; rank < std::min(is_seen.size(), node.peers.size()); ++rank) {
    if (is_seen[rank]) continue;
    Row row;
    row.member = {.kind = group.kind,
                  .name = group.name,
                  .rank = static_cast<std::int32_t>(rank),
                  .size = group.size,
                  .memory_bytes = 0,
                  .memory_used = 0};
    row.state = state_of(node.peers[rank]);
    row.process = node.peers[rank].process;
    group.rows.push_back(std::move(row));
  }
}

// The rows of what this process, a number, is; not of ranks of which none is seen.
void keep_process(Group& group, std::string_view number) {
  std::erase_if(group.rows, [&](const Row& row) {
    return row.counters.process == 0 || number != std::to_string(row.counters.process);
  });
}

void sort(Group& group, Order order) {
  std::stable_sort(group.rows.begin(), group.rows.end(), [&](const Row& one, const Row& other) {
    return std::make_tuple(-weight_of(one, order), one.member.rank, one.process) <
           std::make_tuple(-weight_of(other, order), other.member.rank, other.process);
  });
}

}  // namespace

std::string name_of(const Row& row) {
  if (row.member.kind == MemberKind::kEndpoint) return "-";
  return std::to_string(row.member.rank);
}

std::optional<Rates> Viewer::rates_of(const CountersSeen& now, Clock::time_point when) const {
  const auto found = before_.find(now.process);
  if (found == before_.end() || !now.counts_calls) return std::nullopt;
  const auto& [then, before] = found->second;
  const double seconds = to_seconds(when - before);
  if (seconds <= 0) return std::nullopt;
  // Never negative: another process may have the number by now.
  return Rates{.calls = std::max(0.0, calls_of(now) - calls_of(then)) / seconds,
               .bytes = std::max(0.0, bytes_of(now) - bytes_of(then)) / seconds,
               .waits = std::max(0.0, static_cast<double>(now.waited_so_far_ns()) -
                                          static_cast<double>(then.waited_so_far_ns())) *
                        1e-9 / seconds};
}

View Viewer::look(Order order) {
  const auto now = Clock::now();
  View view{.host = host_name(), .groups = {}};
  std::map<std::pair<MemberKind, std::string>, Group> groups;
  std::map<std::string, std::shared_ptr<const SegmentSeen>> nodes;
  std::map<std::int32_t, Before> after;
  for (const ProcessSeen& seen : reader_.look()) {
    const std::optional<Rates> rates = rates_of(seen.counters, now);
    for (const MemberSeen& member : seen.counters.members) {
      Group& group = groups[{member.kind, member.name}];
      group.kind = member.kind;
      group.name = member.name;
      group.size = std::max(group.size, member.size);
      group.rows.push_back({.member = member,
                            .process = seen.counters.process,
                            .command = seen.command,
                            .state = state_of(seen),
                            .counters = seen.counters,
                            .rates = rates});
      if (seen.node != nullptr && member.name == seen.node->job) nodes[member.name] = seen.node;
    }
    after[seen.counters.process] = {seen.counters, now};
  }
  before_ = std::move(after);
  for (auto& [key, group] : groups) {
    group.seen = group.rows.size();
    if (const auto node = nodes.find(group.name); node != nodes.end())
      add_unseen_ranks(group, *node->second);
    if (!only_.empty() && only_ != group.name) keep_process(group, only_);
    if (group.rows.empty()) continue;
    sort(group, order);
    view.groups.push_back(std::move(group));
  }
  return view;
}

}  // namespace memspan::top
