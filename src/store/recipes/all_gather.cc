// SPDX-License-Identifier: Apache-2.0
// all_gather.h shows how the callers decide. This file has one caller's part in it.
#include "store/recipes/all_gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <new>

#include "store/recipes/all_gather_records.h"
#include "store/recipes/change_queue.h"
#include "store/recipes/rank_recipe.h"

namespace memspan::inline store {
namespace {

// How often a waiting caller wakes to see whether it has waited for long.
constexpr Duration kLook = std::chrono::seconds(1);
// Time for a caller to withdraw after its deadline.
constexpr Duration kWithdrawal = std::chrono::seconds(1);

std::int64_t now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

Status is_gone(const EpochCaller& caller) {
  return member_is_gone(caller.rank, caller.member);
}

// kInvalidArgument names the allowed values.
Status check_place(int rank, int size) {
  constexpr int kMostMembers = static_cast<int>(kMostRanks);
  if (size < 1 || size > kMostMembers)
    return {Code::kInvalidArgument,
            fmt::format("a group has 1 to {} members, not {}", kMostMembers, size)};
  if (rank < 0 || rank >= size)
    return {Code::kInvalidArgument,
            fmt::format("the rank is {}, allowed are 0 to {}", rank, size - 1)};
  return Status::ok();
}

// One caller's part in one epoch. One thread.
class EpochCall : NotCopyable {
 public:
  EpochCall(KeyValueStore& store, EpochKind kind, std::string_view name, int rank, int size,
            const Deadline& deadline)
      : store_(store),
        kind_(kind),
        name_(name),
        keys_(EpochKeys::of(kind, name)),
        rank_(rank),
        size_(size),
        deadline_(deadline),
        began_(now_ms()),
        changes_(store) {}
  // To the others, a caller that could not empty its slot, for lack of memory or time, has left.
  ~EpochCall() {
    if (!has_begun_ || !mine_.is_waiting()) return;
    try {
      const Deadline deadline = Deadline::after(kWithdrawal);
      const auto now = store_.get_now(keys_.slot(rank_), deadline);
      if (now.is_ok() && *now == encode_record(mine_))
        static_cast<void>(store_.remove(keys_.slot(rank_), deadline));
    } catch (const std::bad_alloc&) {
      // The lease ends it.
    }
  }

  // `nonce` is unique to this call. Returns the decision that includes it.
  Result<EpochDecision> run(std::uint64_t nonce, std::string_view mine,
                            std::string_view alive = {}) {
    mine_ = {.state = EpochSlot::State::kWaiting,
             .caller = {.rank = rank_,
                        .nonce = nonce,
                        .lease = store_.lease(),
                        .member = store_.member(),
                        .alive = std::string(alive)},
             .size = size_,
             .part = Contribution(mine, size_)};
    MEMSPAN_TRY(changes_.watch(is_first() ? keys_.prefix : keys_.first_prefix(), deadline_),
                "watching the others");
    // It is removed if this member leaves.
    if (!is_first()) MEMSPAN_TRY(changes_.watch(keys_.slot(rank_), deadline_), "watching the slot");
    // Before the slot is filled: decisions about it and departures are among the changes.
    MEMSPAN_TRY_ASSIGN(auto before, find_record<EpochSlot>(store_, keys_.slot(rank_), deadline_),
                       "joining the others");
    if (before && before->caller.lease == mine_.caller.lease) mine_.met = before->met;
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

 private:
  bool is_first() const { return rank_ == 0; }
  Result<EpochDecision> wait() {
    WaitNotice notice{rank_, size_, name_, deadline_};
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

  Status read_decision(const Deadline& deadline) {
    MEMSPAN_PASS_ASSIGN(auto found, find_record<EpochDecision>(store_, keys_.decision(), deadline));
    decision_ = found ? std::move(*found) : EpochDecision();
    return Status::ok();
  }

  Result<EpochSlots> read_slots(const Deadline& deadline) {
    MEMSPAN_TRY_ASSIGN(EpochSlots slots,
                       list_records<EpochSlot>(store_, keys_.slots_prefix(), deadline),
                       "listing the members");
    if (is_first()) {
      slots[0] = mine_;
      return slots;
    }
    MEMSPAN_PASS_ASSIGN(auto first, find_record<EpochSlot>(store_, keys_.slot(0), deadline));
    if (first) slots[0] = std::move(*first);
    return slots;
  }

  // Tries until this caller has the slot. It may take that of a finished epoch.
  Status fill_slot(std::optional<EpochSlot> before) {
    for (;;) {
      if (before && before->is_waiting()) {
        MEMSPAN_TRY(read_decision(deadline_), "joining the others");
        if (decision_.leaves_open(*before, size_))
          return rank_is_taken(rank_, before->caller.member);
      }
      const std::string wanted = encode_record(mine_);
      MEMSPAN_TRY_ASSIGN(
          const std::string now,
          store_.compare_and_swap(keys_.slot(rank_), before ? encode_record(*before) : "", wanted,
                                  deadline_, KeyLife::kLease),
          "joining the others");
      if (now == wanted) return Status::ok();
      before.reset();
      if (now.empty()) continue;
      MEMSPAN_TRY_ASSIGN(before, decode_record<EpochSlot>(now), "joining the others");
    }
  }

  // Rank 0 may have gone since this caller's last epoch, or found that another one has.
  Status look_for_first() {
    MEMSPAN_PASS_ASSIGN(auto first, find_record<EpochSlot>(store_, keys_.slot(0), deadline_));
    if (!first) return check_presence(mine_.met);
    first_ = std::move(*first);
    if (mine_.met.nonce == 0) return Status::ok();
    MEMSPAN_PASS(read_decision(deadline_));
    return check_last_callers();
  }

  // For a caller of the last epoch that has no slot any more.
  Status check_presence(const EpochCaller& caller) const {
    if (caller.nonce == 0) return Status::ok();
    if (!caller.alive.empty()) {
      const auto alive = store_.get_now(caller.alive, deadline_);
      if (alive.code() != Code::kNotFound) return alive.status();  // it has forgotten the name
    }
    return is_gone(caller);
  }

  // Whether another one of the last complete epoch's callers has gone, if this member was one.
  Status check_last_callers() const {
    if (decision_.lost.nonce == 0) return Status::ok();
    for (const EpochCaller& caller : decision_.last)
      if (caller.lease == store_.lease()) return is_gone(decision_.lost);
    return Status::ok();
  }

  // For rank 0. Decides what can be decided: that a caller has another size, that all have come, or
  // that one is gone.
  Status decide() {
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

  // For the others: the parts of callers that gave up an all-gather count, so if that of rank 0 is
  // among them, the last one to come decides.
  Status complete_for_first() {
    if (first_.state != EpochSlot::State::kGaveUp) return Status::ok();
    return complete(deadline_).status();
  }

  // False: some have not come. A caller that gives up a creation has not taken part: if it empties
  // its slot before it finds the announcement, it is not in the listing; if it finds it, it changes
  // the decision, which keeps this from deciding by an older listing.
  Result<bool> complete(const Deadline& deadline) {
    if (kind_ == EpochKind::kAllgather) return complete_now(deadline);
    MEMSPAN_TRY(store_.set(keys_.announcement(), "", deadline, KeyLife::kLease), "announcing");
    auto is_over = complete_now(deadline);
    static_cast<void>(store_.remove(keys_.announcement(), Deadline::after(kWithdrawal)));
    return is_over;
  }

  Result<bool> complete_now(const Deadline& deadline) {
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
      }
      MEMSPAN_TRY_ASSIGN(const bool is_written, swap(std::move(next), deadline), "completing");
      if (is_written) return true;
    }
  }

  // A caller that waited here, or one of the last epoch if rank 0 was also in it: kPeerLost.
  Result<std::optional<EpochCaller>> find_gone() const {
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

  // Writes the decision. False: reads the one that another caller has written instead.
  Result<bool> swap(EpochDecision next, const Deadline& deadline) {
    for (const EpochCaller& caller : next.decided) next.consumed.insert(caller.nonce);
    const std::string before = decision_.serial == 0 ? "" : encode_record(decision_);
    const std::string wanted = encode_record(next);
    // It ends with rank 0, whose death the others notice.
    const KeyLife life = is_first() ? KeyLife::kLease : KeyLife::kPermanent;
    MEMSPAN_TRY_ASSIGN(const std::string now,
                       store_.compare_and_swap(keys_.decision(), before, wanted, deadline, life),
                       "writing");
    decision_ = {};
    if (!now.empty()) {
      MEMSPAN_TRY_ASSIGN(decision_, decode_record<EpochDecision>(now), "writing");
    }
    return now == wanted;
  }

  // kPeerLost: this caller cannot take part any more.
  Status note_change(const StoreChange& change) {
    if (change.key == keys_.announcement()) return Status::ok();
    if (change.key == keys_.decision()) {
      if (change.event == StoreEvent::kRemoved) return Status::ok();
      MEMSPAN_TRY_ASSIGN(EpochDecision decision, decode_record<EpochDecision>(change.value),
                         "a decision");
      const bool is_mine = decision.concerns(mine_.caller.nonce);
      if (is_first() && !is_mine) return Status::ok();  // it knows those, and later ones
      decision_ = std::move(decision);
      return is_mine ? Status::ok() : check_last_callers();
    }
    EpochSlot slot;
    if (change.event == StoreEvent::kSet) {
      MEMSPAN_TRY_ASSIGN(slot, decode_record<EpochSlot>(change.value), "a slot");
    }
    if (change.key == keys_.slot(rank_)) {
      has_come_ = has_come_ || slot.caller.nonce == mine_.caller.nonce;
      if (change.event == StoreEvent::kSet || !has_come_) return Status::ok();
      return member_is_gone(rank_, store_.member(), true);
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

  Result<EpochDecision> finish() {
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

  // Unless another caller has it now.
  Status change_slot(EpochSlot to, const Deadline& deadline) {
    const auto now = store_.compare_and_swap(keys_.slot(rank_), encode_record(mine_),
                                             encode_record(to), deadline, KeyLife::kLease);
    if (now.is_ok()) mine_ = std::move(to);
    return now.status();
  }

  // Callers of a creation that gave up while this one waited have come.
  Status find_missing(const Deadline& deadline) {
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

  // Returns a time-out, or what has been lost, unless the epoch has been decided with this caller.
  Result<EpochDecision> give_up(const Status& lost) {
    const Deadline deadline = Deadline::after(kWithdrawal);
    const bool still_counts = kind_ == EpochKind::kAllgather && lost.is_ok();
    EpochSlot left = mine_;
    left.state = still_counts ? EpochSlot::State::kGaveUp : EpochSlot::State::kEmpty;
    left.gave_up_at = now_ms();
    if (!still_counts) left.part = {};
    MEMSPAN_TRY(change_slot(std::move(left), deadline), "giving up");
    MEMSPAN_TRY(read_decision(deadline), "giving up");
    if (is_first() && decision_.serial == 0)
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
        const bool has_ended = decision_.serial == 0 && first_.is_waiting() &&
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

  // The decision about this caller may be among the changes: there are later ones, or it ended with
  // rank 0.
  Result<EpochDecision> find_decision(const Status& why, const Deadline& deadline) {
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

  KeyValueStore& store_;
  const EpochKind kind_;
  const std::string name_;
  const EpochKeys keys_;
  const int rank_;
  const int size_;
  const Deadline deadline_;
  const std::int64_t began_;  // milliseconds of the system's clock
  ChangeQueue changes_;
  EpochSlot mine_;
  EpochDecision decision_ = {};
  bool has_begun_ = false;           // it has the slot, or may have it
  bool has_come_ = false;            // the change that filled the slot was among the changes
  EpochSlot first_ = {};             // of rank 0, as the others saw it last
  EpochSlots slots_ = {};            // as rank 0 saw them last; its own is filled
  std::map<int, EpochCaller> gone_;  // in rank 0: callers that waited when their slots were removed
};

}  // namespace

Result<std::vector<std::string>> allgather(KeyValueStore& store, std::string_view name, int rank,
                                           int size, std::string_view mine, Deadline deadline,
                                           std::string_view alive) {
  MEMSPAN_TRY(check_place(rank, size), "all-gather");
  MEMSPAN_TRY(Contribution(mine, size).check(rank, size), "all-gather");
  // Any number of single callers may use one name at the same time.
  if (size == 1) return std::vector<std::string>{std::string(mine)};
  EpochCall call(store, EpochKind::kAllgather, name, rank, size, deadline);
  MEMSPAN_TRY_ASSIGN(auto decision, call.run(new_nonce(), mine, alive),
                     fmt::format("all-gather \"{}\"", name));
  return std::move(decision.parts);
}

Status leave_allgather(KeyValueStore& store, std::string_view name, Deadline deadline) {
  const EpochKeys keys = EpochKeys::of(EpochKind::kAllgather, name);
  MEMSPAN_TRY_ASSIGN(auto slots, list_records<EpochSlot>(store, keys.slots_prefix(), deadline),
                     "leaving");
  MEMSPAN_PASS_ASSIGN(auto first, find_record<EpochSlot>(store, keys.slot(0), deadline));
  const bool may_be_consumed = std::any_of(slots.begin(), slots.end(), [](const auto& slot) {
    return slot.second.state != EpochSlot::State::kEmpty;
  });
  // Rank 0 reads there which slots are of epochs that are over; otherwise it ends with the lease.
  if (first && first->caller.lease == store.lease() && !may_be_consumed)
    MEMSPAN_TRY(store.remove(keys.decision(), deadline).status(), "leaving");
  if (first) slots[0] = std::move(*first);
  for (const auto& [rank, slot] : slots)
    if (slot.caller.lease == store.lease())
      MEMSPAN_TRY(store.remove(keys.slot(rank), deadline).status(), "leaving");
  return Status::ok();
}

Result<CreatedGroup> create_group(KeyValueStore& store, std::string_view name, int rank, int size,
                                  std::string_view mine, Deadline deadline) {
  MEMSPAN_TRY(check_place(rank, size), "creating a group");
  CreatedGroup created{.alive_prefix = fmt::format("{}/alive/", name)};
  const std::uint64_t nonce = new_nonce();
  // Set before others rely on this member, so that they notice its end from the first moment.
  const std::string alive = created.alive_key(nonce);
  MEMSPAN_TRY(store.set(alive, store.member(), deadline, KeyLife::kLease), "creating a group");
  EpochCall call(store, EpochKind::kCreateGroup, name, rank, size, deadline);
  auto decision = call.run(nonce, mine);
  if (!decision.is_ok()) {
    static_cast<void>(store.remove(alive, Deadline::after(kWithdrawal)));
    return decision.status().annotate(fmt::format("creating the group \"{}\"", name));
  }
  for (const EpochCaller& caller : decision->decided)
    created.members.push_back({caller.nonce, caller.lease, caller.member});
  created.name = fmt::format("{}#{:016x}", name, created.members.front().nonce);
  created.contributions = std::move(decision->parts);
  return created;
}

}  // namespace memspan::inline store
