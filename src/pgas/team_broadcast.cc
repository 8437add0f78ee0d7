// SPDX-License-Identifier: Apache-2.0
// Barriers of broadcasts, at which the root does not wait. It may be ahead of the others by as many
// as the area has turns; steps that need all members wait for them then (make_room, settle). This
// also holds with the central counter: one of four processes on two cores may then do a dozen
// broadcasts while it has its core.
#include <fmt/format.h>

#include "node/wait.h"
#include "pgas/team.h"

namespace memspan {

Status Team::barrier_of_root(const char* what, const CollectiveSignature& mine, int root,
                             const std::uint64_t* words, int count) {
  if (is_uncommon_ || shape_.size == 1 || shape_.size > SyncArea::kMostWithManyTurns)
    return barrier_checked(what, mine, words, count);
  if (!broken_.is_ok()) [[unlikely]]
    return broken_;
  MEMSPAN_PASS(await_turn(what, area_.turns()));
  const std::uint64_t sequence = sequence_ + 1;
  const std::uint64_t signature = mine.encode(sequence);
  area_.line(index_, sequence).words[kSignatureWord].store(signature, std::memory_order_relaxed);
  publish(words, count, sequence);
  // A barrier that waits for all counts how often they have entered any.
  if (uses_central_counter_) area_.header().entered.fetch_add(1, std::memory_order_acq_rel);
  for (int member = 0; member < shape_.size; ++member)
    if (member != index_) world_.route(shape_.peer_of(member)).notify_sync();
  if (index_ != root) {
    const SyncLine& line = area_.line(root, sequence);
    const Status status = wait_for(
        world_.waiting(), WaitsFor::kSync, what, Deadline::never(),
        [&] { return line.sequence.load(std::memory_order_acquire) >= sequence; },
        Needs{[&] {
                return world_.waiting().is_gone(peer_of(root)) && !has_entered(root, sequence)
                           ? peer_of(root)
                           : -1;
              },
              [&] { return peer_of(root); }});
    if (!status.is_ok()) return broken_ = explain(status, sequence);
  }
  sequence_ = sequence;
  if (index_ == root || word(root, kSignatureWord) == signature) [[likely]]
    return Status::ok();
  return explain_difference(signature, word(root, kSignatureWord), root);
}

Status Team::await_entered(const char* what, std::uint64_t sequence) {
  if (!broken_.is_ok()) return broken_;
  for (int member = 0; member < shape_.size; ++member) {
    if (member == index_) continue;
    const Status status = wait_for(
        world_.waiting(), WaitsFor::kSync, what, Deadline::never(),
        [&] { return has_entered(member, sequence); },
        Needs{[&] { return first_lost_of(missing_from_flags(sequence)); },
              [&] { return peer_of(member); }});
    if (!status.is_ok()) return broken_ = explain(status, sequence);
  }
  MEMSPAN_PASS(check_broadcasts(sequence));
  entered_ = sequence;
  return Status::ok();
}

// Compares the broadcasts up to barrier `last` that were over here before all had entered them. A
// signature that names another barrier is of a member that is a whole ring ahead, or not in a
// broadcast: that member finds the difference.
Status Team::check_broadcasts(std::uint64_t last) {
  const int next = index_ + 1 < shape_.size ? index_ + 1 : 0;
  const auto signature_of = [this](int member, std::uint64_t sequence) {
    return area_.line(member, sequence).words[kSignatureWord].load(std::memory_order_relaxed);
  };
  for (std::uint64_t sequence = entered_ + 1; sequence <= last; ++sequence) {
    const std::uint64_t mine = signature_of(index_, sequence);
    const std::uint64_t theirs = signature_of(next, sequence);
    if (theirs == mine || !CollectiveSignature::is_of_barrier(theirs, sequence)) continue;
    return broken_ =
               explain_difference(mine, theirs, next).annotate("a broadcast before this call");
  }
  return Status::ok();
}

}  // namespace memspan
