// SPDX-License-Identifier: Apache-2.0
// The barriers of a team on one node: all-to-all flags for few members on cores of their own, a
// central counter for others.
#include <fmt/format.h>

#include "pgas/node_barrier.h"
#include "pgas/team_barrier.h"

namespace memspan::inline pgas {
namespace {

// Up to this many members on as many cores, every member reads every flag, with the latency of one
// line. Beyond that, or if cores are shared, all look at one counter and one line.
constexpr int kMostByAllToAllFlags = 8;

}  // namespace

TeamBarrier::TeamBarrier(World& world, const TeamShape& shape, Id id, LocalTeams* local_teams)
    : TeamMembers(world, shape, id),
      uses_central_counter_(world.is_oversubscribed() || size() > kMostByAllToAllFlags),
      is_uncommon_(local_teams != nullptr || nodes() != nullptr),
      local_teams_(local_teams) {}

Status TeamBarrier::destroy(const char* what) {
  if (local_teams_ != nullptr) {
    if (entry_ != nullptr) LocalTeams::detach(*entry_);
    return Status::ok();
  }
  MEMSPAN_PASS(barrier(what));
  return area_.leave(what);
}

Status TeamBarrier::prepare_local(const char* what) {
  MEMSPAN_PASS(broken_);
  if (entry_ == nullptr) {
    MEMSPAN_TRY_ASSIGN(entry_, local_teams_->attach(what, shape(), id()), "making the team");
    area_.open(entry_->place.load(std::memory_order_relaxed));
  }
  catch_up();
  return Status::ok();
}

void TeamBarrier::publish(const std::uint64_t* words, int count, std::uint64_t sequence) {
  SyncLine& mine = area_.line(index(), sequence);
  for (int i = 0; i < count; ++i) mine.words[i].store(words[i], std::memory_order_relaxed);
  // Pairs with the acquire loads of members that wait for it; by counter the fetch_add does it.
  mine.sequence.store(sequence, std::memory_order_release);
}

Status TeamBarrier::barrier(const char* what, const std::uint64_t* words, int count) {
  if (!broken_.is_ok()) [[unlikely]]
    return broken_;
  if (is_uncommon_) [[unlikely]]
    MEMSPAN_PASS(prepare(what));
  MEMSPAN_PASS(await_turn(what, area_.turns()));
  const std::uint64_t sequence = sequence_ + 1;
  const bool is_far = is_uncommon_ && nodes() != nullptr;
  if (is_far) [[unlikely]]
    clear_words_of_earlier_barriers(count, sequence);
  publish(words, count, sequence);
  if (size() > 1) {
    Status status = is_far                  ? barrier_among_nodes(area_, what, sequence)
                    : uses_central_counter_ ? barrier_by_central_counter(what, sequence)
                                            : barrier_by_all_to_all_flags(what, sequence);
    if (!status.is_ok()) return broken_ = explain(status, sequence);
  }
  sequence_ = sequence;
  if (entered_ + 1 != sequence) [[unlikely]]
    MEMSPAN_PASS(check_broadcasts(sequence - 1));
  entered_ = sequence;
  return Status::ok();
}

// Members whose words are the same share them on the way to other nodes.
void TeamBarrier::clear_words_of_earlier_barriers(int from, std::uint64_t sequence) {
  SyncLine& mine = area_.line(index(), sequence);
  for (int i = from; i < kPayloadWords; ++i) {
    const std::uint64_t word = mine.words[i].load(std::memory_order_relaxed);
    if (i == kSignatureWord && CollectiveSignature::is_of_barrier(word, sequence)) continue;
    mine.words[i].store(0, std::memory_order_relaxed);
  }
}

Status TeamBarrier::barrier_checked(const char* what, const CollectiveSignature& mine,
                                    const std::uint64_t* words, int count) {
  if (!broken_.is_ok()) [[unlikely]]
    return broken_;
  // Others may still compare what the line had (barrier_of_root).
  MEMSPAN_PASS(await_turn(what, area_.turns()));
  const std::uint64_t signature = sign(mine, sequence_ + 1);
  MEMSPAN_PASS(barrier(what, words, count));
  // One look each finds a difference in any team: not all can have what their next one has.
  return compare_signature(signature, next_member());
}

Status TeamBarrier::explain(const Status& status, std::uint64_t sequence) const {
  if (status.code() != Code::kTimeout) return status;
  // While a member on this node is missing, nothing has been heard of the others.
  std::vector<int> missing;
  std::vector<int> near;
  for (int member = 0; member < size(); ++member) {
    if (area_.has_entered(member, sequence)) continue;
    missing.push_back(peer_of(member));
    if (is_near(member)) near.push_back(peer_of(member));
  }
  return status.annotate(
      fmt::format("PE {} did not come", fmt::join(near.empty() ? missing : near, ", ")));
}

Status TeamBarrier::barrier_by_all_to_all_flags(const char* what, std::uint64_t sequence) {
  for (int member = 0; member < size(); ++member)
    if (member != index()) world().route(peer_of(member)).notify_sync();
  for (int i = 1; i < size(); ++i) {
    int member = index() + i < size() ? index() + i : index() + i - size();
    MEMSPAN_PASS(area_.await_flag(what, member, sequence,
                                  [&] { return first_lost(area_.missing_from_flags(sequence)); }));
  }
  return Status::ok();
}

Status TeamBarrier::barrier_by_central_counter(const char* what, std::uint64_t sequence) {
  SyncHeader& header = area_.header();
  auto members = static_cast<std::uint64_t>(size());
  // acq_rel: the last one has seen what all before it stored, and passes it on by `released`.
  if (header.entered.fetch_add(1, std::memory_order_acq_rel) + 1 == members * sequence) {
    area_.release(sequence);
    return Status::ok();
  }
  return wait_for(
      world().waiting(), WaitsFor::kSync, what, Deadline::never(),
      [&] { return header.released.load(std::memory_order_acquire) >= sequence; },
      Needs{[&] {
              const int missing = area_.missing_from_flags(sequence);
              // A member may have died before it was counted, or before it released the others as
              // the last one. So the flags decide once there are losses.
              if (missing < 0 && area_.first_awaited(sequence) < 0) area_.release(sequence);
              return first_lost(missing);
            },
            [&] { return area_.first_awaited(sequence); }});
}

// Barriers of broadcasts, at which the root does not wait. It may be ahead of the others by as many
// as the area has turns; steps that need all members wait for them then (make_room, settle). This
// also holds with the central counter: one of four processes on two cores may then do a dozen
// broadcasts while it has its core.

Status TeamBarrier::barrier_of_root(const char* what, const CollectiveSignature& mine, int root,
                                    const std::uint64_t* words, int count) {
  if (is_uncommon_ || size() == 1 || size() > SyncArea::kMostWithManyTurns)
    return barrier_checked(what, mine, words, count);
  if (!broken_.is_ok()) [[unlikely]]
    return broken_;
  MEMSPAN_PASS(await_turn(what, area_.turns()));
  const std::uint64_t sequence = sequence_ + 1;
  const std::uint64_t signature = sign(mine, sequence);
  publish(words, count, sequence);
  // A barrier that waits for all counts how often they have entered any.
  if (uses_central_counter_) area_.header().entered.fetch_add(1, std::memory_order_acq_rel);
  for (int member = 0; member < size(); ++member)
    if (member != index()) world().route(peer_of(member)).notify_sync();
  if (index() != root) {
    const Status status = area_.await_flag(what, root, sequence, [&] {
      const int peer = peer_of(root);
      return world().waiting().is_gone(peer) && !area_.has_entered(root, sequence) ? peer : -1;
    });
    if (!status.is_ok()) return broken_ = explain(status, sequence);
  }
  sequence_ = sequence;
  return compare_signature(signature, root);
}

Status TeamBarrier::await_entered(const char* what, std::uint64_t sequence) {
  if (!broken_.is_ok()) return broken_;
  for (int member = 0; member < size(); ++member) {
    if (member == index()) continue;
    const Status status = area_.await_flag(
        what, member, sequence, [&] { return first_lost(area_.missing_from_flags(sequence)); });
    if (!status.is_ok()) return broken_ = explain(status, sequence);
  }
  MEMSPAN_PASS(check_broadcasts(sequence));
  entered_ = sequence;
  return Status::ok();
}

// Compares the broadcasts up to barrier `last` that were over here before all had entered them. A
// signature that names another barrier is of a member that is a whole ring ahead, or not in a
// broadcast: that member finds the difference.
Status TeamBarrier::check_broadcasts(std::uint64_t last) {
  const int next = next_member();
  const auto signature_of = [this](int member, std::uint64_t sequence) {
    return area_.line(member, sequence).words[kSignatureWord].load(std::memory_order_relaxed);
  };
  for (std::uint64_t sequence = entered_ + 1; sequence <= last; ++sequence) {
    const std::uint64_t mine = signature_of(index(), sequence);
    const std::uint64_t theirs = signature_of(next, sequence);
    if (theirs == mine || !CollectiveSignature::is_of_barrier(theirs, sequence)) continue;
    return broken_ = CollectiveSignature::explain_difference(mine, theirs, peer_of(next))
                         .annotate("a broadcast before this call");
  }
  return Status::ok();
}

}  // namespace memspan::inline pgas
