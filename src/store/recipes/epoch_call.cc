// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/epoch_call.h"

#include <fmt/format.h>

#include <chrono>
#include <new>

#include "store/recipes/rank_recipe.h"
#include "store/recipes/store_group.h"

namespace memspan {
namespace {

// How often a waiting caller wakes to see whether it has waited for long.
constexpr Duration kLook = std::chrono::seconds(1);

std::int64_t now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

std::string created_group_name(std::string_view name, const EpochDecision& decision) {
  return fmt::format("{}#{:016x}", name, decision.decided.front().nonce);
}

std::string created_alive_prefix(std::string_view name) {
  return fmt::format("{}/alive/", name);
}

EpochCall::EpochCall(KeyValueStore& store, EpochKind kind, std::string_view name, int rank,
                     int size, const Deadline& deadline, std::string_view alive)
    : store_(store),
      alive_(alive),
      kind_(kind),
      name_(name),
      keys_(EpochKeys::of(kind, name)),
      rank_(rank),
      size_(size),
      deadline_(deadline),
      began_(now_ms()),
      changes_(store) {}

EpochCall::~EpochCall() {
  if (!has_begun_ || !mine_.is_waiting()) return;
  try {
    const Deadline deadline = Deadline::after(kWithdrawal);
    const auto now = store_.get_now(keys_.slot(rank_), deadline);
    if (now.is_ok() && *now == mine_.encode())
      static_cast<void>(store_.remove(keys_.slot(rank_), deadline));
  } catch (const std::bad_alloc&) {
    // The lease ends it.
  }
}

Result<EpochDecision> EpochCall::run(std::uint64_t nonce, std::string_view mine) {
  mine_ = {.state = EpochSlot::State::kWaiting,
           .caller = {.rank = rank_,
                      .nonce = nonce,
                      .lease = store_.lease(),
                      .member = store_.member(),
                      .alive = alive_},
           .size = size_,
           .part = Contribution(mine, size_)};
  MEMSPAN_TRY(changes_.watch(is_first() ? keys_.prefix : keys_.first_prefix(), deadline_),
              "watching the others");
  // It is removed if this member leaves.
  if (!is_first()) MEMSPAN_TRY(changes_.watch(keys_.slot(rank_), deadline_), "watching the slot");
  // Before the slot is filled: decisions about it and departures are among the changes.
  MEMSPAN_TRY_ASSIGN(std::string before, read_own_slot(), "joining the others");
  if (is_first()) {
    MEMSPAN_TRY_ASSIGN(slots_, read_slots(deadline_), "joining the others");
  } else {
    MEMSPAN_PASS(look_for_first());
  }
  has_begun_ = true;
  MEMSPAN_PASS(fill_slot(std::move(before)));
  // The slot is filled: from here on, a caller that gives up changes it.
  return wait();
}

Result<EpochDecision> EpochCall::wait() {
  WaitNotice notice(rank_, size_, name_, deadline_);
  Status begun = is_first() ? read_decision(deadline_) : complete_for_first();
  if (is_first() && begun.is_ok()) begun = decide();
  for (;;) {
    if (decision_.concerns(mine_.caller.nonce)) return finish();
    if (begun.code() == Code::kTimeout || is_interrupted() || deadline_.has_passed())
      return give_up(Status::ok());
    if (begun.code() == Code::kPeerLost) return give_up(begun);
    MEMSPAN_PASS(begun);
    notice.look();
    auto change = changes_.next(deadline_.within(kLook));
    if (!change.is_ok() && change.code() != Code::kTimeout) return change.status();
    if (change.is_ok()) begun = note_change(*change);
  }
}

Status EpochCall::read_decision(const Deadline& deadline) {
  auto text = store_.get_now(keys_.decision(), deadline);
  if (!text.is_ok() && text.code() != Code::kNotFound) return text.status();
  decision_text_ = text.is_ok() ? std::move(*text) : "";
  MEMSPAN_TRY_ASSIGN(decision_, EpochDecision::decode(decision_text_), "reading the decision");
  return Status::ok();
}

Result<EpochSlots> EpochCall::read_slots(const Deadline& deadline) {
  MEMSPAN_TRY_ASSIGN(const StoreListing listing, store_.list(keys_.slots_prefix(), deadline),
                     "listing the members");
  EpochSlots slots;
  for (const auto& [key, value] : listing) {
    MEMSPAN_TRY_ASSIGN(const int rank, rank_in_key(key, keys_.slots_prefix()), "a slot");
    MEMSPAN_TRY_ASSIGN(slots[rank], EpochSlot::decode(value), "a slot");
  }
  if (is_first()) {
    slots[0] = mine_;
    return slots;
  }
  const auto first = store_.get_now(keys_.slot(0), deadline);
  if (first.code() == Code::kNotFound) return slots;
  if (!first.is_ok()) return first.status();
  MEMSPAN_TRY_ASSIGN(slots[0], EpochSlot::decode(*first), "a slot");
  return slots;
}

Result<std::string> EpochCall::read_own_slot() {
  auto text = store_.get_now(keys_.slot(rank_), deadline_);
  if (text.code() == Code::kNotFound) return std::string();
  if (!text.is_ok()) return text.status();
  MEMSPAN_TRY_ASSIGN(const EpochSlot slot, EpochSlot::decode(*text), "reading the slot");
  if (slot.caller.lease == mine_.caller.lease) mine_.met = slot.met;
  return text;
}

Status EpochCall::fill_slot(std::string before) {
  for (;;) {
    if (!before.empty()) {
      MEMSPAN_TRY_ASSIGN(const EpochSlot slot, EpochSlot::decode(before), "joining the others");
      if (slot.is_waiting()) MEMSPAN_TRY(read_decision(deadline_), "joining the others");
      if (slot.is_waiting() && decision_.leaves_open(slot, size_))
        return {Code::kUnavailable,
                fmt::format("rank {} is taken by {}{}", rank_, slot.caller.member, kRankTaken)};
    }
    const std::string wanted = mine_.encode();
    MEMSPAN_TRY_ASSIGN(
        const std::string now,
        store_.compare_and_swap(keys_.slot(rank_), before, wanted, deadline_, KeyLife::kLease),
        "joining the others");
    if (now == wanted) return Status::ok();
    before = now;
  }
}

Status EpochCall::look_for_first() {
  const auto text = store_.get_now(keys_.slot(0), deadline_);
  if (text.code() == Code::kNotFound) return check_presence(mine_.met);
  if (!text.is_ok()) return text.status();
  MEMSPAN_TRY_ASSIGN(first_, EpochSlot::decode(*text), "joining the others");
  if (mine_.met.nonce == 0) return Status::ok();
  MEMSPAN_PASS(read_decision(deadline_));
  return check_last_callers();
}

Status EpochCall::check_presence(const EpochCaller& caller) const {
  if (caller.nonce == 0) return Status::ok();
  if (!caller.alive.empty()) {
    const auto alive = store_.get_now(caller.alive, deadline_);
    if (alive.code() != Code::kNotFound) return alive.status();  // it has forgotten the name
  }
  return is_gone(caller);
}

Status EpochCall::check_last_callers() const {
  if (!decision_.has_lost_one_of(store_.lease())) return Status::ok();
  return is_gone(decision_.lost);
}

Status EpochCall::decide() {
  while (!decision_.concerns(mine_.caller.nonce)) {
    // Runs at each change, so it copies nothing before something is to be decided.
    const EpochSlot* other = nullptr;
    int open = 0;
    for (const auto& [rank, slot] : slots_) {
      if (!decision_.leaves_open(slot, size_)) continue;
      ++open;
      if (slot.size != size_) other = &slot;
    }
    std::optional<EpochCaller> gone;
    if (other == nullptr && open == size_) {
      MEMSPAN_TRY_ASSIGN(const bool is_over, complete(deadline_), "deciding");
      if (is_over) continue;
      return Status::ok();
    }
    if (other == nullptr) {
      MEMSPAN_TRY_ASSIGN(gone, find_gone(), "looking for the others");
      if (!gone) return Status::ok();
    }
    EpochDecision next = decision_.next(slots_);
    for (const auto& [rank, slot] : slots_)
      if (decision_.leaves_open(slot, size_)) next.decided.push_back(slot.caller);
    if (other != nullptr) {
      next.status = Status(Code::kInvalidArgument,
                           fmt::format("rank {} says that there are {} members, others said {}",
                                       other->caller.rank, other->size, size_));
      if (kind_ == EpochKind::kAllgather) next.decided = {other->caller};
    } else {
      next.status = is_gone(*gone);
      for (const EpochCaller& caller : next.last)
        if (caller.lease == gone->lease) next.lost = caller;
    }
    MEMSPAN_TRY(swap(std::move(next), deadline_).status(), "deciding");
  }
  return Status::ok();
}

Status EpochCall::complete_for_first() {
  if (first_.state != EpochSlot::State::kGaveUp) return Status::ok();
  return complete(deadline_).status();
}

Result<bool> EpochCall::complete(const Deadline& deadline) {
  if (kind_ == EpochKind::kAllgather) return complete_now(deadline);
  MEMSPAN_TRY(store_.set(keys_.announcement(), "", deadline, KeyLife::kLease), "announcing");
  auto is_over = complete_now(deadline);
  static_cast<void>(store_.remove(keys_.announcement(), Deadline::after(kWithdrawal)));
  return is_over;
}

Result<bool> EpochCall::complete_now(const Deadline& deadline) {
  for (;;) {
    MEMSPAN_PASS(read_decision(deadline));
    if (decision_.concerns(mine_.caller.nonce)) return true;
    MEMSPAN_TRY_ASSIGN(const EpochSlots slots, read_slots(deadline), "completing");
    EpochDecision next = decision_.next(slots);
    for (const auto& [rank, slot] : slots) {
      if (!decision_.leaves_open(slot, size_) || slot.size != size_) continue;
      next.decided.push_back(slot.caller);
      next.parts.push_back(slot.part.bytes);
      if (next.status.is_ok()) next.status = slot.part.check(rank, size_);
    }
    if (next.decided.size() != static_cast<std::size_t>(size_)) return false;
    if (!next.status.is_ok()) {
      next.parts.clear();
    } else if (kind_ == EpochKind::kAllgather) {
      next.last = next.decided;
      next.lost = {};
    } else {
      MEMSPAN_PASS(write_founders(next));
    }
    MEMSPAN_TRY_ASSIGN(const bool is_written, swap(std::move(next), deadline), "completing");
    if (is_written) return true;
  }
}

Status EpochCall::write_founders(const EpochDecision& decision) {
  GroupFounders founders{.alive_prefix = created_alive_prefix(name_), .members = {}};
  for (const EpochCaller& caller : decision.decided)
    founders.members.push_back({caller.nonce, caller.lease, caller.member});
  const GroupKeys keys{.group = created_group_name(name_, decision)};
  return store_.set(keys.founders_key(), founders.encode(), deadline_);
}

Status EpochCall::is_gone(const EpochCaller& caller) {
  return {Code::kPeerLost,
          fmt::format("rank {} ({}) is gone: its lease ended", caller.rank, caller.member)};
}

Result<std::optional<EpochCaller>> EpochCall::find_gone() const {
  for (const auto& [rank, caller] : gone_)
    if (!decision_.consumed.contains(caller.nonce)) return std::optional(caller);
  std::vector<const EpochCaller*> absent;
  bool was_in_it = false;
  for (const EpochCaller& caller : decision_.last) {
    const auto slot = slots_.find(caller.rank);
    if (slot == slots_.end())
      absent.push_back(&caller);
    else if (slot->second.caller.lease != caller.lease)
      return std::optional<EpochCaller>();  // other callers use this name now
    was_in_it = was_in_it || caller.lease == store_.lease();
  }
  for (const EpochCaller* caller : absent) {
    const Status found = was_in_it ? check_presence(*caller) : Status::ok();
    if (found.code() == Code::kPeerLost) return std::optional(*caller);
    MEMSPAN_PASS(found);
  }
  return std::optional<EpochCaller>();
}

Result<bool> EpochCall::swap(EpochDecision next, const Deadline& deadline) {
  for (const EpochCaller& caller : next.decided) next.consumed.insert(caller.nonce);
  const std::string wanted = next.encode();
  // It ends with rank 0, whose death the others notice.
  const KeyLife life = is_first() ? KeyLife::kLease : KeyLife::kPermanent;
  MEMSPAN_TRY_ASSIGN(
      decision_text_,
      store_.compare_and_swap(keys_.decision(), decision_text_, wanted, deadline, life), "writing");
  MEMSPAN_TRY_ASSIGN(decision_, EpochDecision::decode(decision_text_), "writing");
  return decision_text_ == wanted;
}

Status EpochCall::note_change(const StoreChange& change) {
  if (change.key == keys_.announcement()) return Status::ok();
  if (change.key == keys_.decision()) {
    if (change.event == StoreEvent::kRemoved) return Status::ok();
    MEMSPAN_TRY_ASSIGN(EpochDecision decision, EpochDecision::decode(change.value), "a decision");
    const bool is_mine = decision.concerns(mine_.caller.nonce);
    if (is_first() && !is_mine) return Status::ok();  // it knows those, and later ones
    decision_ = std::move(decision);
    decision_text_ = change.value;
    return is_mine ? Status::ok() : check_last_callers();
  }
  EpochSlot slot;
  if (change.event == StoreEvent::kSet) {
    MEMSPAN_TRY_ASSIGN(slot, EpochSlot::decode(change.value), "a slot");
  }
  if (change.key == keys_.slot(rank_)) {
    has_come_ = has_come_ || slot.caller.nonce == mine_.caller.nonce;
    if (change.event == StoreEvent::kSet || !has_come_) return Status::ok();
    return {Code::kPeerLost, fmt::format("rank {} ({}) is gone: it left", rank_, store_.member())};
  }
  if (!is_first()) {
    std::swap(first_, slot);
    if (change.event == StoreEvent::kSet) return complete_for_first();
    if (slot.is_waiting() && decision_.leaves_open(slot, size_)) return is_gone(slot.caller);
    return slot.caller.lease == mine_.met.lease ? check_presence(mine_.met) : Status::ok();
  }
  MEMSPAN_TRY_ASSIGN(const int rank, rank_in_key(change.key, keys_.slots_prefix()), "a slot");
  if (change.event == StoreEvent::kSet) {
    gone_.erase(rank);
    slots_[rank] = std::move(slot);
  } else if (const auto before = slots_.extract(rank);
             !before.empty() && before.mapped().is_waiting()) {
    gone_[rank] = before.mapped().caller;
  }
  return decide();
}

Result<EpochDecision> EpochCall::finish() {
  EpochSlot empty = mine_;
  empty.state = EpochSlot::State::kEmpty;
  empty.part = {};
  const bool is_ok = decision_.status.is_ok();
  if (is_ok && kind_ == EpochKind::kAllgather) empty.met = decision_.decided.front();
  // It shows that this caller still exists.
  MEMSPAN_PASS(change_slot(std::move(empty), Deadline::after(kWithdrawal)));
  if (!is_ok) return decision_.status;
  return std::move(decision_);
}

Status EpochCall::change_slot(EpochSlot to, const Deadline& deadline) {
  const auto now = store_.compare_and_swap(keys_.slot(rank_), mine_.encode(), to.encode(), deadline,
                                           KeyLife::kLease);
  if (now.is_ok()) mine_ = std::move(to);
  return now.status();
}

Status EpochCall::find_missing(const Deadline& deadline) {
  MEMSPAN_TRY_ASSIGN(const EpochSlots slots, read_slots(deadline), "giving up");
  std::vector<int> missing;
  for (int rank = 0; rank < size_; ++rank) {
    const auto slot = slots.find(rank);
    const bool has_come = slot != slots.end() && (decision_.leaves_open(slot->second, size_) ||
                                                  slot->second.gave_up_at >= began_);
    if (!has_come && rank != rank_) missing.push_back(rank);
  }
  return end_of_wait(describe_missing(size_, missing));
}

Result<EpochDecision> EpochCall::give_up(const Status& lost) {
  const Deadline deadline = Deadline::after(kWithdrawal);
  const bool still_counts = kind_ == EpochKind::kAllgather && lost.is_ok();
  EpochSlot left = mine_;
  left.state = still_counts ? EpochSlot::State::kGaveUp : EpochSlot::State::kEmpty;
  left.gave_up_at = now_ms();
  if (!still_counts) left.part = {};
  MEMSPAN_TRY(change_slot(std::move(left), deadline), "giving up");
  MEMSPAN_TRY(read_decision(deadline), "giving up");
  if (is_first() && decision_text_.empty())
    MEMSPAN_TRY(swap(decision_.next({}), deadline).status(), "giving up");
  // Others may have given up at the same moment.
  if (still_counts) MEMSPAN_TRY(complete(deadline).status(), "giving up");
  const Status why = lost.is_ok() ? find_missing(deadline) : lost;
  for (bool is_out = false; !is_out;) {
    const auto announced = store_.get_now(keys_.announcement(), deadline).code();
    MEMSPAN_TRY(read_decision(deadline), "giving up");
    if (decision_.concerns(mine_.caller.nonce)) return finish();
    if (decision_.consumed.contains(mine_.caller.nonce)) return find_decision(why, deadline);
    if (is_first()) return why;
    if (announced == Code::kNotFound) {
      const bool has_ended = decision_text_.empty() && first_.is_waiting() &&
                             store_.get_now(keys_.slot(0), deadline).code() == Code::kNotFound;
      return has_ended ? find_decision(why, deadline) : why;
    }
    EpochDecision next = decision_;
    ++next.serial;
    next.decided.clear();
    next.parts.clear();
    MEMSPAN_TRY_ASSIGN(is_out, swap(std::move(next), deadline), "giving up");
  }
  return why;
}

Result<EpochDecision> EpochCall::find_decision(const Status& why, const Deadline& deadline) {
  while (!decision_.concerns(mine_.caller.nonce)) {
    const auto change = changes_.next(deadline);
    if (change.code() == Code::kTimeout || is_interrupted()) return why;
    if (!change.is_ok()) return change.status();
    if (change->key == keys_.slot(0) && change->event == StoreEvent::kRemoved) return why;
    const Status taken = note_change(*change);
    if (!taken.is_ok() && taken.code() != Code::kPeerLost) return taken;
  }
  return finish();
}

}  // namespace memspan
