// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/process_group.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "pgas/rma.h"

namespace memspan::inline pgas {
Result<std::unique_ptr<ProcessGroup>> ProcessGroup::join(int rank, int size,
                                                         const Exchange& exchange, Duration limit,
                                                         const std::string& host) {
  MEMSPAN_TRY_ASSIGN(Membership membership, join_by_exchange(rank, size, exchange, limit, host),
                     "making a group");
  const std::size_t heap = heap_bytes(membership.nodes);
  MEMSPAN_TRY_ASSIGN(std::unique_ptr<World> world,
                     World::create(std::move(membership), {heap}, StaticVariables::kOwn),
                     "making a group");
  // A word that another member sets is waited for in vain only when that one dies or leaves.
  world->waiting().survives_deaths.store(true, std::memory_order_relaxed);
  auto group = std::make_unique<ProcessGroup>(std::move(world));
  group->set_limit(limit);
  return group;
}

ProcessGroup::ProcessGroup(std::unique_ptr<World> world)
    : world_(std::move(world)),
      team_(Team::world(*world_)),
      direct_reads_(*world_, *team_),
      has_far_(!world_->nodes().is_one()),
      has_messages_(static_cast<std::size_t>(world_->size())),
      idle_(world_->size()) {}

std::size_t ProcessGroup::heap_bytes(const NodeMap& nodes) {
  const auto members = static_cast<std::size_t>(nodes.peers());
  const std::size_t copies = nodes.is_one() ? 0 : 2 * members * kPipelineBytes;
  return kArrivalsBytes + 2 * kPipelineBytes + members * kChannelBytes + copies;
}

// This member's messages are in the far members' memory before they hear that it left: frames of a
// connection are applied in order, so the answer to a quiet comes after them.
void ProcessGroup::leave() {
  // Far members that do not answer within it may miss the last messages of one that leaves.
  constexpr Duration kLeaveLimit = std::chrono::seconds(2);
  if (has_left()) return;
  const Deadline deadline = Deadline::after(kLeaveLimit);
  if (has_far_) {
    OperationContext leaving;
    leaving.set_limit(kLeaveLimit / 2);
    for (int member = 0; member < size(); ++member)
      if (has_messages_[member].load(std::memory_order_relaxed))
        leaving.use(*world_->route(member).link);
    // A member that is gone needs nothing any more.
    static_cast<void>(leaving.quiet());
  }
  world_->depart(deadline);
}

Status ProcessGroup::check_one_node(const char* what) const {
  for (int member = 0; member < size(); ++member)
    if (!is_near(member))
      return {Code::kNotSupported,
              fmt::format("{} needs memory that all members share: member {} is on host {}, this "
                          "one, member {}, on host {}",
                          what, member, world_->nodes().host_of(member), rank(),
                          world_->nodes().host_of(rank()))};
  return Status::ok();
}

// ---- members of other nodes

void ProcessGroup::share(std::size_t offset, const std::byte* from, std::size_t bytes) {
  for (int node = 0; node < world_->nodes().count(); ++node)
    if (node != world_->nodes().node_of(rank())) put_to_node(node, offset, from, bytes);
}

void ProcessGroup::put_to_node(int node, std::size_t offset, const std::byte* from,
                               std::size_t bytes) {
  if (bytes == 0) return;
  const Route& route = world_->route(world_->nodes().leader_of(node));
  const std::byte* const copy = copy_of_buffer(rank(), team_->sequence() + 1, rank()) + offset;
  const Status put =
      route.link->put(world_->operations(), world_->routes().place_of(route, copy), from, bytes);
  if (sharing_.is_ok()) sharing_ = put;
}

Status ProcessGroup::complete_shares() {
  if (!has_far_) return Status::ok();
  Status first = std::exchange(sharing_, Status::ok());
  if (team_->is_node_leader() && team_->nodes()->is_direct()) return first;
  const Status applied = world_->operations().quiet();
  return first.is_ok() ? applied : first;
}

Status ProcessGroup::arrive() {
  MEMSPAN_PASS(team_->settle("arriving"));
  const std::uint64_t arrival = arrived() + 1;
  for (int node = 0; node < world_->nodes().count(); ++node) {
    const int leader = world_->nodes().leader_of(node);
    if (is_near(leader)) continue;
    const Route& route = world_->route(leader);
    const AtomicOp add{.kind = AtomicKind::kAdd, .width = 8, .operand = 1};
    // A member that is gone will be noticed by the collective.
    static_cast<void>(atomic_at(world_->routes(), route, add, far_arrivals_in(rank()), nullptr));
  }
  arrivals_of(rank()).store(arrival, std::memory_order_release);
  wake_if_all_arrived();
  return Status::ok();
}

bool ProcessGroup::have_all_arrived() const {
  const std::vector<int>& near = near_members();
  const std::uint64_t own = arrived();
  for (const int member : near)
    if (arrivals_of(member).load(std::memory_order_acquire) < own) return false;
  if (!has_far_) return true;
  const auto far = static_cast<std::uint64_t>(size()) - near.size();
  const auto& sum =
      *reinterpret_cast<const std::atomic<std::uint64_t>*>(far_arrivals_in(node_leader()));
  return sum.load(std::memory_order_acquire) >= own * far;
}

// The last one to arrive wakes the members that wait for it. Mostly no member sleeps, and the lines
// of the others, which they have just written, stay where they are.
void ProcessGroup::wake_if_all_arrived() const {
  const auto is_other = [this](int member) { return member != rank(); };
  const std::vector<int>& near = near_members();
  if (std::none_of(near.begin(), near.end(),
                   [&](int member) { return is_other(member) && world_->route(member).sleeps(); }))
    return;
  // If two arrive at the same time, at least one of them sees that both have.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!have_all_arrived()) return;
  for (const int member : near)
    if (is_other(member)) world_->route(member).notify_sync();
}

Status ProcessGroup::wait_for_arrivals(Duration patience) {
  return wait_for(world_->waiting(), WaitsFor::kSync, "a collective", Deadline::after(patience),
                  [&] { return have_all_arrived(); });
}

std::byte* ProcessGroup::channel(int owner, int member) const {
  return world_->heap_of(owner) + kArrivalsBytes + 2 * kPipelineBytes +
         static_cast<std::size_t>(member) * kChannelBytes;
}

// The others may be ahead of this member, in the call that begins here: they write what it uses of
// the next buffer. Its old bytes have no readers any more. The last barrier's buffer may have some.
Status ProcessGroup::give_back(const char* what, const BufferUse& use) {
  MEMSPAN_PASS(team_->settle(what));
  const std::uint64_t next = team_->sequence() + 1;
  if (!idle_.take(next & 1)) return Status::ok();
#ifdef MEMSPAN_NATIVE_RMA
  if (has_far_) return Status::ok();  // the network may have pinned the pages
#endif
  const auto remove_rest = [&use](std::byte* buffer) {
    for (std::size_t at = 0; at + use.stride <= kPipelineBytes; at += use.stride) {
      const auto end = reinterpret_cast<std::uintptr_t>(buffer) + at + use.stride;
      const std::uintptr_t begin = align_up(end - use.stride + use.bytes, page_size());
      if (begin + page_size() > end) continue;
      // Locked pages stay.
      madvise(reinterpret_cast<void*>(begin), (end - begin) / page_size() * page_size(),
              MADV_REMOVE);
    }
  };
  remove_rest(buffer_in(rank(), next));
  if (has_far_ && rank() == node_leader())
    for (int member = 0; member < size(); ++member)
      if (!is_near(member)) remove_rest(copy_of_buffer(member, next, rank()));
  return Status::ok();
}

void StageWrites::begin(std::size_t kind, std::size_t bytes) {
  turn_ = {};
  way_ = nullptr;
  if (bytes < kLeastBytes) return;
  const auto size = static_cast<std::size_t>(std::bit_width(bytes / kLeastBytes) - 1) / 2;
  choice_ = &choices_[kind][std::min(size, kSizes - 1)];
  const auto ways = copy_ways();
  turn_ = choice_->next(static_cast<unsigned>(ways.size()));
  way_ = &ways[turn_.way];
  bytes_ = bytes;
  took_ = {};
  resume();
}

void StageWrites::end() {
  pause();
  if (turn_.is_rated()) choice_->rate(turn_, CopyChoice::cost_of(took_, bytes_));
  turn_ = {};
}

}  // namespace memspan::inline pgas
