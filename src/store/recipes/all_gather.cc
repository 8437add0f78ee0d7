// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/all_gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <utility>

#include "core/bytes.h"
#include "core/interrupt.h"
#include "store/rank_service.h"
#include "store/recipes/change_queue.h"
#include "store/recipes/contributions.h"
#include "store/recipes/epoch_records.h"
#include "store/recipes/group_records.h"
#include "store/recipes/key_names.h"

namespace memspan {
namespace {

// Time for a caller to withdraw after its deadline.
constexpr Duration kWithdrawal = std::chrono::seconds(1);
// How often a waiting caller wakes to see whether it has waited for long.
constexpr Duration kLook = std::chrono::seconds(1);

enum class Kind { kAllgather, kCreateGroup };

std::string created_name(std::string_view name, const std::vector<EpochCaller>& callers) {
  return fmt::format("{}#{:016x}", name, callers.front().nonce);
}

std::string alive_prefix(std::string_view name) {
  return fmt::format("{}/alive/", name);
}

// One caller's part in one epoch. One thread.
class EpochCall {
 public:
  EpochCall(KeyValueStore& store, Kind kind, std::string_view name, int rank, int size,
            const Deadline& deadline)
      : store_(store),
        kind_(kind),
        name_(name),
        prefix_(fmt::format("{}/{}/", name, kind == Kind::kAllgather ? "allgather" : "create")),
        rank_(rank),
        size_(size),
        deadline_(deadline),
        changes_(store) {}
  // A call that ended for lack of memory: to the others its caller has left.
  ~EpochCall() {
    if (!is_waiting_) return;
    try {
      remove(slot_key(), mine_.encode());
      remove(collector_key(), mine_.caller.encode());
    } catch (const std::bad_alloc&) {
      // The lease ends them.
    }
  }
  EpochCall(const EpochCall&) = delete;
  EpochCall& operator=(const EpochCall&) = delete;

  // `nonce` is unique to this call. Returns the decision that includes it.
  Result<EpochDecision> run(std::uint64_t nonce, std::string_view mine) {
    mine_ = {.state = EpochSlot::State::kFilled,
             .caller = {.rank = rank_,
                        .nonce = nonce,
                        .lease = store_.lease(),
                        .member = store_.member()},
             .size = size_,
             .part = Contribution(mine, size_)};
    MEMSPAN_TRY(changes_.watch(prefix_ + "wait/", deadline_), "watching the others");
    is_waiting_ = true;
    const Status filled = fill_slot();
    if (!filled.is_ok()) is_waiting_ = false;
    MEMSPAN_PASS(filled);
    // The slot is filled: from here on, a caller that gives up empties it.
    auto decision = wait();
    if (is_collecting_) stop_collecting();
    is_waiting_ = false;
    return decision;
  }

 private:
  std::string slots_prefix() const { return prefix_ + "slot/"; }
  std::string slot_key() const { return rank_key(slots_prefix(), rank_); }
  std::string decision_key() const { return prefix_ + "wait/decision"; }
  std::string collector_key() const { return prefix_ + "wait/collector"; }
  std::string handover_key() const { return prefix_ + "handover"; }

  // No process watches the slots until the next collector does: it learns whose slots there were.
  void stop_collecting() {
    const Deadline deadline = Deadline::after(kWithdrawal);
    ByteWriter waiting;
    for (const EpochSlot* slot : view_.fresh(size_))
      if (slot->caller.nonce != mine_.caller.nonce) waiting.text(slot->caller.encode());
    if (!waiting.bytes().empty())
      static_cast<void>(store_.set(handover_key(), waiting.bytes(), deadline));
    static_cast<void>(store_.remove(collector_key(), deadline));
  }

  // Callers that have gone since the collector before stopped.
  Status read_handover() {
    const auto text = store_.get_now(handover_key(), deadline_);
    if (text.code() == Code::kNotFound) return Status::ok();
    if (!text.is_ok()) return text.status();
    ByteReader reader(*text);
    while (!reader.is_finished()) {
      MEMSPAN_TRY_ASSIGN(EpochCaller caller, EpochCaller::decode(reader.text()), "a handover");
      if (!view_.slots.contains(caller.rank)) gone_[caller.rank] = std::move(caller);
    }
    return store_.remove(handover_key(), deadline_).status();
  }

  // If it has the value that this call has set.
  void remove(const std::string& key, const std::string& set) {
    const Deadline deadline = Deadline::after(kWithdrawal);
    const auto now = store_.get_now(key, deadline);
    if (now.is_ok() && *now == set) static_cast<void>(store_.remove(key, deadline));
  }

  Result<EpochDecision> wait() {
    WaitNotice notice(rank_, size_, name_, deadline_);
    for (;;) {
      if (collector_.nonce == 0) {
        const Status begun = collect();
        if (begun.code() == Code::kTimeout) return give_up();
        MEMSPAN_PASS(begun);
      }
      auto change = changes_.next(deadline_.within(kLook));
      if (is_interrupted() || deadline_.has_passed()) return give_up();
      notice.look();
      if (change.code() == Code::kTimeout) continue;
      if (!change.is_ok()) return change.status();
      MEMSPAN_TRY(take(*change), "reading what changed");
      if (view_.decision.concerns(mine_.caller.nonce)) return finish();
    }
  }

  Status read_decision(const Deadline& deadline) {
    auto text = store_.get_now(decision_key(), deadline);
    if (!text.is_ok() && text.code() != Code::kNotFound) return text.status();
    view_.decision_text = text.is_ok() ? std::move(*text) : "";
    MEMSPAN_TRY_ASSIGN(view_.decision, EpochDecision::decode(view_.decision_text),
                       "reading the decision");
    return Status::ok();
  }

  Status read_slots(const Deadline& deadline) {
    MEMSPAN_TRY_ASSIGN(const StoreListing listing, store_.list(slots_prefix(), deadline),
                       "listing the members");
    MEMSPAN_TRY_ASSIGN(view_.slots, memspan::read_slots(listing, slots_prefix()), "reading");
    return Status::ok();
  }

  // Tries until this caller has the slot. It may take that of a finished epoch.
  Status fill_slot() {
    for (;;) {
      const auto before = store_.get_now(slot_key(), deadline_);
      if (!before.is_ok() && before.code() != Code::kNotFound)
        return before.status().annotate("joining the others");
      MEMSPAN_TRY(read_decision(deadline_), "joining the others");
      mine_.serial = view_.decision.serial;
      if (before.is_ok()) {
        MEMSPAN_TRY_ASSIGN(const EpochSlot slot, EpochSlot::decode(*before), "joining the others");
        if (slot.state == EpochSlot::State::kFilled &&
            !view_.decision.consumed.contains(slot.caller.nonce))
          return {Code::kUnavailable,
                  fmt::format("rank {} is taken by {}{}", rank_, slot.caller.member, kRankTaken)};
      }
      const std::string wanted = mine_.encode();
      MEMSPAN_TRY_ASSIGN(const std::string now,
                         store_.compare_and_swap(slot_key(), before.is_ok() ? *before : "", wanted,
                                                 deadline_, KeyLife::kLease),
                         "joining the others");
      if (now == wanted) return Status::ok();
    }
  }

  // Tries to become the one that decides.
  Status collect() {
    MEMSPAN_TRY_ASSIGN(const std::string now,
                       store_.compare_and_swap(collector_key(), "", mine_.caller.encode(),
                                               deadline_, KeyLife::kLease),
                       "waiting for the others");
    MEMSPAN_TRY_ASSIGN(collector_, EpochCaller::decode(now), "waiting for the others");
    if (collector_.nonce != mine_.caller.nonce) return Status::ok();
    is_collecting_ = true;
    MEMSPAN_TRY(changes_.watch(slots_prefix(), deadline_), "watching the others");
    MEMSPAN_PASS(read_slots(deadline_));
    MEMSPAN_PASS(read_decision(deadline_));
    MEMSPAN_PASS(read_handover());
    // A collector that returns leaves its slot. This caller's own is gone if it has left.
    for (const EpochCaller& caller : {mine_.caller, former_})
      if (caller.nonce != 0 && !view_.slots.contains(caller.rank)) gone_[caller.rank] = caller;
    return decide();
  }

  // Decides what can be decided: that a caller has another size, that all have come, or that one is
  // gone. The decision's change follows.
  Status decide() {
    while (!view_.decision.concerns(mine_.caller.nonce)) {
      const auto fresh = view_.fresh(size_);
      EpochDecision next = view_.next_decision();
      const auto other = std::find_if(fresh.begin(), fresh.end(), [this](const EpochSlot* slot) {
        return slot->size != size_;
      });
      const auto gone = who_is_gone(fresh);
      const bool is_of_one = other != fresh.end() && kind_ == Kind::kAllgather;
      for (const EpochSlot* slot : fresh)
        if (!is_of_one || slot == *other) next.decided.push_back(slot->caller);
      if (other != fresh.end()) {
        next.status = Status(Code::kInvalidArgument,
                             fmt::format("rank {} says that there are {} members, others said {}",
                                         (*other)->caller.rank, (*other)->size, size_));
      } else if (fresh.size() == static_cast<std::size_t>(size_)) {
        MEMSPAN_PASS(complete(fresh, next));
      } else if (gone) {
        next.status = Status(Code::kPeerLost, fmt::format("rank {} ({}) is gone: its lease ended",
                                                          gone->rank, gone->member));
        for (const auto& [rank, caller] : gone_) next.decided.push_back(caller);  // if they left
      } else {
        return Status::ok();
      }
      for (const EpochCaller& caller : next.decided) next.consume(caller);
      MEMSPAN_TRY(swap(next, deadline_).status(), "deciding");
    }
    return Status::ok();
  }

  Status complete(const std::vector<const EpochSlot*>& fresh, EpochDecision& next) {
    for (const EpochSlot* slot : fresh) {
      if (next.status.is_ok()) next.status = slot->part.check(slot->caller.rank, size_);
      next.parts.push_back(slot->part.bytes);
    }
    if (!next.status.is_ok()) return Status::ok();
    next.last = next.decided;
    if (kind_ == Kind::kAllgather) return Status::ok();
    GroupFounders founders{.alive_prefix = alive_prefix(name_), .members = {}};
    for (const EpochCaller& caller : next.decided)
      founders.members.push_back({caller.nonce, caller.lease, caller.member});
    const GroupKeys keys{.group = created_name(name_, next.decided)};
    return store_.set(keys.founders_key(), founders.encode(), deadline_);
  }

  // A caller that waited here, or one of the last epoch if a caller that waits was also in it.
  std::optional<EpochCaller> who_is_gone(const std::vector<const EpochSlot*>& fresh) const {
    for (const auto& [rank, caller] : gone_)
      if (!view_.decision.consumed.contains(caller.nonce)) return caller;
    if (kind_ == Kind::kCreateGroup) return std::nullopt;
    std::optional<EpochCaller> gone;
    bool was_in_it = false;
    for (const EpochCaller& caller : view_.decision.last) {
      const auto slot = view_.slots.find(caller.rank);
      if (slot == view_.slots.end())
        gone = gone ? gone : caller;
      else if (slot->second.caller.lease != caller.lease)
        return std::nullopt;  // other callers use this name now
      else
        was_in_it =
            was_in_it || std::find(fresh.begin(), fresh.end(), &slot->second) != fresh.end();
    }
    return was_in_it ? gone : std::nullopt;
  }

  // Writes the decision. False: reads the one that another caller has written instead.
  Result<bool> swap(const EpochDecision& next, const Deadline& deadline) {
    const std::string wanted = next.encode();
    MEMSPAN_TRY_ASSIGN(
        view_.decision_text,
        store_.compare_and_swap(decision_key(), view_.decision_text, wanted, deadline), "writing");
    MEMSPAN_TRY_ASSIGN(view_.decision, EpochDecision::decode(view_.decision_text), "writing");
    return view_.decision_text == wanted;
  }

  Status take(const StoreChange& change) {
    if (change.key == collector_key()) {
      if (is_collecting_) return Status::ok();
      if (change.event == StoreEvent::kRemoved) {
        former_ = std::exchange(collector_, {});
      } else {
        MEMSPAN_TRY_ASSIGN(collector_, EpochCaller::decode(change.value), "the collector");
      }
      return Status::ok();
    }
    if (change.key == decision_key()) {
      MEMSPAN_TRY_ASSIGN(EpochDecision decision, EpochDecision::decode(change.value), "a decision");
      // The collector may know a later one than that about itself.
      if (change.event == StoreEvent::kRemoved ||
          (decision.serial < view_.decision.serial && !decision.concerns(mine_.caller.nonce)))
        return Status::ok();
      view_.decision = std::move(decision);
      view_.decision_text = change.value;
      return Status::ok();
    }
    MEMSPAN_TRY_ASSIGN(const int rank, rank_in_key(change.key, slots_prefix()), "a slot");
    if (change.event == StoreEvent::kSet) {
      MEMSPAN_TRY_ASSIGN(view_.slots[rank], EpochSlot::decode(change.value), "a slot");
      gone_.erase(rank);
    } else if (const auto slot = view_.slots.extract(rank);
               !slot.empty() && slot.mapped().state == EpochSlot::State::kFilled) {
      gone_[rank] = slot.mapped().caller;
    }
    return decide();
  }

  Result<EpochDecision> finish() {
    // The empty slot shows that this caller still exists.
    EpochSlot empty = mine_;
    empty.state = EpochSlot::State::kEmpty;
    empty.part = {};
    MEMSPAN_PASS(change_slot(empty));
    if (!view_.decision.status.is_ok()) return view_.decision.status;
    EpochDecision decision = std::move(view_.decision);
    view_.decision.consumed = decision.consumed;
    return decision;
  }

  // Unless another caller has the slot now.
  Status change_slot(const EpochSlot& to) {
    return store_
        .compare_and_swap(slot_key(), mine_.encode(), to.encode(), Deadline::after(kWithdrawal),
                          KeyLife::kLease)
        .status();
  }

  std::vector<int> missing() const {
    std::vector<int> missing;
    for (int rank = 0; rank < size_; ++rank) {
      const auto found = view_.slots.find(rank);
      const bool has_come = found != view_.slots.end() &&
                            found->second.state != EpochSlot::State::kEmpty &&
                            (found->second.serial >= mine_.serial ||  // gave up just now
                             !view_.decision.consumed.contains(found->second.caller.nonce));
      if (!has_come) missing.push_back(rank);
    }
    return missing;
  }

  // The part of an all-gather still counts. In a creation, a decision that it does not keeps the
  // collector from completing the epoch with it.
  Result<EpochDecision> give_up() {
    const Deadline deadline = Deadline::after(kWithdrawal);
    MEMSPAN_TRY(read_slots(deadline), "giving up");
    MEMSPAN_TRY(read_decision(deadline), "giving up");
    const Status why = end_of_wait(describe_missing(size_, missing()));
    EpochSlot mine = mine_;
    mine.state = EpochSlot::State::kGaveUp;
    if (kind_ == Kind::kAllgather) {
      MEMSPAN_TRY(change_slot(mine), "giving up");
      MEMSPAN_TRY(read_decision(deadline), "giving up");
    }
    for (bool is_out = false; !is_out;) {
      if (view_.decision.concerns(mine_.caller.nonce)) return finish();
      if (view_.decision.consumed.contains(mine_.caller.nonce)) return find_decision(deadline);
      if (kind_ == Kind::kAllgather) return why;
      EpochDecision next = view_.decision;
      ++next.serial;
      next.decided.clear();
      next.parts.clear();
      next.consume(mine_.caller);
      MEMSPAN_TRY_ASSIGN(is_out, swap(next, deadline), "giving up");
    }
    MEMSPAN_TRY(change_slot(mine), "giving up");
    return why;
  }

  // There are later decisions than the one about this caller, which is among the changes.
  Result<EpochDecision> find_decision(const Deadline& deadline) {
    for (view_ = {}; !view_.decision.concerns(mine_.caller.nonce);) {
      MEMSPAN_TRY_ASSIGN(const StoreChange change, changes_.next(deadline), "giving up");
      if (change.key == decision_key()) MEMSPAN_PASS(take(change));
    }
    return finish();
  }

  KeyValueStore& store_;
  const Kind kind_;
  const std::string name_;
  const std::string prefix_;
  const int rank_;
  const int size_;
  const Deadline deadline_;
  ChangeQueue changes_;
  EpochSlot mine_;
  EpochView view_;                   // its slots: only in the collector
  std::map<int, EpochCaller> gone_;  // callers that waited when their slots were removed
  EpochCaller collector_ = {};       // nonce 0: none, as far as was seen
  EpochCaller former_ = {};          // the one before
  bool is_waiting_ = false;          // it has the slot, or may have it
  bool is_collecting_ = false;
};

}  // namespace

Result<std::vector<std::string>> allgather(KeyValueStore& store, std::string_view name, int rank,
                                           int size, std::string_view mine, Deadline deadline) {
  MEMSPAN_TRY(check_place(rank, size), "all-gather");
  MEMSPAN_TRY(Contribution(mine, size).check(rank, size), "all-gather");
  // Any number of single callers may use one name at the same time.
  if (size == 1) return std::vector<std::string>{std::string(mine)};
  EpochCall call(store, Kind::kAllgather, name, rank, size, deadline);
  auto decision = call.run(new_nonce(), mine);
  if (!decision.is_ok()) return decision.status().annotate(fmt::format("all-gather \"{}\"", name));
  return std::move(decision->parts);
}

Status leave_allgather(KeyValueStore& store, std::string_view name, Deadline deadline) {
  const std::string slots_prefix = fmt::format("{}/allgather/slot/", name);
  MEMSPAN_TRY_ASSIGN(const StoreListing listing, store.list(slots_prefix, deadline), "leaving");
  MEMSPAN_TRY_ASSIGN(const EpochSlots slots, read_slots(listing, slots_prefix), "leaving");
  for (const auto& [rank, slot] : slots)
    if (slot.caller.lease == store.lease())
      MEMSPAN_TRY(store.remove(rank_key(slots_prefix, rank), deadline).status(), "leaving");
  return Status::ok();
}

Status barrier(KeyValueStore& store, std::string_view name, int rank, int size, Deadline deadline) {
  return allgather(store, name, rank, size, {}, deadline).status();
}

Result<CreatedGroup> create_group(KeyValueStore& store, std::string_view name, int rank, int size,
                                  std::string_view mine, Deadline deadline) {
  MEMSPAN_TRY(check_place(rank, size), "creating a group");
  const std::uint64_t nonce = new_nonce();
  // Set before others rely on this member, so that they notice its end from the first moment.
  const GroupFounders founders{.alive_prefix = alive_prefix(name), .members = {}};
  const std::string alive = founders.alive_key(nonce);
  MEMSPAN_TRY(store.set(alive, store.member(), deadline, KeyLife::kLease), "creating a group");
  EpochCall call(store, Kind::kCreateGroup, name, rank, size, deadline);
  auto decision = call.run(nonce, mine);
  if (!decision.is_ok()) {
    static_cast<void>(store.remove(alive, Deadline::after(kWithdrawal)));
    return decision.status().annotate(fmt::format("creating the group \"{}\"", name));
  }
  return CreatedGroup{.name = created_name(name, decision->decided),
                      .contributions = std::move(decision->parts)};
}

}  // namespace memspan
