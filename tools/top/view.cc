// SPDX-License-Identifier: Apache-2.0
#include "top/view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/environment.h"

namespace memspan::top {
namespace {

std::string state_of(const ProcessSeen& seen) {
  if (seen.state == 'T' || seen.state == 't') return "stopped";
  if (!seen.counters.waiting.empty()) return "waits";
  return seen.state == 'R' ? "runs" : "sleeps";
}

// For a rank without a visible process.
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

Amounts totals_of(const CountersSeen& seen) {
  Amounts sum;
  for (const CallCount& count : seen.calls) {
    sum.calls += static_cast<double>(count.calls);
    sum.bytes += static_cast<double>(count.bytes);
  }
  sum.waits = waited_seconds(seen);
  return sum;
}

// The value that a key sorts by, the largest first. Equal waits (all, if they are not counted) are
// sorted by the time that the present wait has taken.
std::pair<double, std::uint64_t> weight_of(const Row& row, Order order, Measure measure) {
  const Amounts amounts = amounts_of(row, measure).value_or(Amounts{});
  switch (order) {
    case Order::kCalls:
      return {amounts.calls, 0};
    case Order::kBytes:
      return {amounts.bytes, 0};
    case Order::kWaits:
      return {amounts.waits,
              row.counters.waiting.empty() ? 0 : row.counters.waiting.front().nanoseconds};
    case Order::kRank:
      break;
  }
  return {};
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

void sort(Group& group, Order order, Measure measure) {
  std::stable_sort(group.rows.begin(), group.rows.end(), [&](const Row& one, const Row& other) {
    const auto weight = weight_of(one, order, measure);
    const auto other_weight = weight_of(other, order, measure);
    if (weight != other_weight) return weight > other_weight;
    return std::tie(one.member.rank, one.process) < std::tie(other.member.rank, other.process);
  });
}

Status why_nothing(const std::string& only) {
  if (!only.empty())
    return {Code::kNotFound, fmt::format("no job, pool, endpoint or member process \"{}\"", only)};
  return {Code::kNotFound, fmt::format("no process{} is in a job or a pool or has an endpoint",
                                       geteuid() == 0 ? "" : " of this user")};
}

}  // namespace

double waited_seconds(const CountersSeen& seen) {
  std::uint64_t all = seen.waited_ns;
  if (seen.counts_calls)
    for (const WaitSeen& wait : seen.waiting) all += wait.nanoseconds;
  return static_cast<double>(all) * 1e-9;
}

std::string name_of(const Row& row) {
  if (row.member.kind == MemberKind::kEndpoint) return "-";
  return std::to_string(row.member.rank);
}

std::string name_of(const Group& group) {
  return fmt::format("{} {}", name_of(group.kind), group.name);
}

std::optional<Amounts> amounts_of(const Row& row, Measure measure) {
  if (measure == Measure::kRates) return row.rates;
  if (!row.counters.counts_calls) return std::nullopt;
  return totals_of(row.counters);
}

std::optional<Amounts> Viewer::rates_of(const CountersSeen& now, Clock::time_point when) const {
  const auto found = before_.find(now.process);
  if (found == before_.end() || !now.counts_calls) return std::nullopt;
  const double seconds = to_seconds(when - found->second.when);
  if (seconds <= 0) return std::nullopt;
  const Amounts totals = totals_of(now);
  const Amounts before = totals_of(found->second.counters);
  // Never negative: another process may have the number by now.
  return Amounts{.calls = std::max(0.0, totals.calls - before.calls) / seconds,
                 .bytes = std::max(0.0, totals.bytes - before.bytes) / seconds,
                 .waits = std::max(0.0, totals.waits - before.waits) / seconds};
}

// A pool is forgotten with its last member.
void Viewer::add_gone_members(Groups& groups) {
  std::map<std::string, std::map<std::int32_t, Row>> pools;
  for (auto& [key, group] : groups) {
    if (group.kind != MemberKind::kPool) continue;
    std::map<std::int32_t, Row>& now = pools[group.name];
    for (const Row& row : group.rows) now[row.member.rank] = row;
    for (auto& [rank, row] : pools_[group.name]) {
      if (now.count(rank) != 0) continue;
      row.state = "gone";
      row.counters = {};
      row.rates.reset();
      group.rows.push_back(row);
      now[rank] = std::move(row);
    }
  }
  pools_ = std::move(pools);
}

View Viewer::look(Order order) {
  const auto now = Clock::now();
  const auto wall_clock = std::chrono::system_clock::now().time_since_epoch();
  View view{.host = host_name(),
            .time = std::chrono::duration<double>(wall_clock).count(),
            .measure = before_.empty() ? Measure::kTotals : Measure::kRates,
            .groups = {},
            .nothing = Status::ok(),
            .others = {}};
  Groups groups;
  std::map<std::string, std::shared_ptr<const SegmentSeen>> nodes;
  std::map<std::int32_t, Before> after;
  for (const ProcessSeen& seen : reader_.look()) {
    const std::optional<Amounts> rates = rates_of(seen.counters, now);
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
  for (auto& [key, group] : groups) group.seen = group.rows.size();
  add_gone_members(groups);
  for (auto& [key, group] : groups) {
    view.others.push_back(name_of(group));
    if (const auto node = nodes.find(group.name); node != nodes.end())
      add_unseen_ranks(group, *node->second);
    if (!only_.empty() && only_ != group.name) keep_process(group, only_);
    if (group.rows.empty()) continue;
    sort(group, order, view.measure);
    view.groups.push_back(std::move(group));
  }
  if (view.groups.empty())
    view.nothing = why_nothing(only_);
  else
    view.others.clear();
  return view;
}

}  // namespace memspan::top
