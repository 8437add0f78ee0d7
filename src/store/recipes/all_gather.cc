// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/all_gather.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "store/collective_service.h"
#include "store/recipes/change_queue.h"
#include "store/recipes/epoch_records.h"
#include "store/recipes/group_records.h"
#include "store/recipes/key_names.h"

namespace memspan {
namespace {

// Time for a caller to withdraw after its deadline.
constexpr Duration kWithdrawal = std::chrono::seconds(1);

enum class Kind { kAllgather, kCreateGroup };

// Outcome of an epoch for a caller that took part in it.
struct Outcome {
  std::vector<EpochCaller> callers;        // by rank
  std::vector<std::string> contributions;  // by rank
};

// One caller's part in one epoch. One thread.
class EpochCall {
 public:
  EpochCall(KeyValueStore& store, Kind kind, std::string prefix, int rank, int size,
            const Deadline& deadline)
      : store_(store),
        kind_(kind),
        prefix_(std::move(prefix)),
        rank_(rank),
        size_(static_cast<std::uint32_t>(size)),
        deadline_(deadline),
        changes_(store) {}

  // `nonce` is unique to this call.
  Result<Outcome> run(std::uint64_t nonce, std::string_view mine) {
    mine_ = {.state = EpochSlot::State::kFilled,
             .caller = {.rank = rank_,
                        .nonce = nonce,
                        .lease = store_.lease(),
                        .member = store_.member()},
             .size = size_,
             .length = mine.size(),
             .bytes = std::string(mine.size() <= share() ? mine : "")};
    MEMSPAN_TRY(changes_.watch(prefix_, deadline_), "watching the others");
    MEMSPAN_PASS(fill_slot());
    // The slot is filled: from here on, a caller that gives up empties it.
    if (const Status status = decide(); status.code() == Code::kTimeout)
      return give_up();
    else if (!status.is_ok())
      return status;
    for (;;) {
      auto change = changes_.next(deadline_);
      if (change.code() == Code::kTimeout || is_interrupted()) return give_up();
      if (!change.is_ok()) return change.status();
      MEMSPAN_TRY_ASSIGN(const bool is_over, take(*change), "reading what changed");
      if (is_over) return finish();
    }
  }

 private:
  std::string slot_key() const { return rank_key(prefix_ + "slot/", rank_); }
  std::string decision_key() const { return prefix_ + "decision"; }

  // One listing must hold all slots.
  std::size_t share() const { return kMaxValueBytes / 2 / size_; }

  Status check_lengths(const std::map<int, EpochSlot>& fresh) const {
    std::size_t bytes = 0;
    for (const auto& [rank, slot] : fresh) {
      bytes += slot.length + sizeof(std::uint32_t);
      if (slot.length > share())
        return {Code::kInvalidArgument,
                fmt::format("rank {} brought {} bytes, at most {} of each of {} are allowed", rank,
                            slot.length, share(), size_)};
    }
    return check_contributions(bytes, size_);
  }

  // Reads everything at one moment.
  Result<EpochView> look(const Deadline& deadline) {
    MEMSPAN_TRY_ASSIGN(const StoreListing listing, store_.list(prefix_, deadline), "looking");
    MEMSPAN_TRY_ASSIGN(EpochView view, EpochView::read(listing, prefix_), "looking");
    for (const auto& [rank, slot] : view.slots) note(slot);
    note(view.decision);
    return view;
  }

  // Tries until this caller has the slot.
  Status fill_slot() {
    for (;;) {
      MEMSPAN_TRY_ASSIGN(const EpochView view, look(deadline_), "joining the others");
      MEMSPAN_PASS(check_size(view));
      const auto slot = view.slots.find(rank_);
      if (slot != view.slots.end() && slot->second.state == EpochSlot::State::kFilled) {
        if (!view.decision.consumed.contains(slot->second.caller.nonce))
          return {Code::kUnavailable, fmt::format("rank {} is taken by {}{}", rank_,
                                                  slot->second.caller.member, kRankTaken)};
        // The slot is of a finished epoch; its caller is about to empty it.
        MEMSPAN_TRY(changes_.next(deadline_).status(), "waiting for the rank's caller before");
        continue;
      }
      const std::string before = slot == view.slots.end() ? std::string() : slot->second.encode();
      const std::string wanted = mine_.encode();
      MEMSPAN_TRY_ASSIGN(
          const std::string now,
          store_.compare_and_swap(slot_key(), before, wanted, deadline_, KeyLife::kLease),
          "joining the others");
      if (now == wanted) return Status::ok();
    }
  }

  // Waiting callers must agree on the size. In a creation another size fails it for all.
  Status check_size(const EpochView& view) {
    for (const auto& [rank, slot] : view.fresh()) {
      if (slot.size == size_) continue;
      Status why(Code::kInvalidArgument,
                 fmt::format("rank {} says that there are {} members, others said {}", rank_, size_,
                             slot.size));
      if (kind_ == Kind::kCreateGroup) MEMSPAN_PASS(swap(view, why, deadline_).status());
      return why;
    }
    return Status::ok();
  }

  // Decides the epoch when all have come, or a caller is gone.
  Status decide() {
    for (;;) {
      MEMSPAN_TRY_ASSIGN(const EpochView view, look(deadline_), "listing the members");
      if (view.decision.concerns(mine_.caller.nonce)) return Status::ok();  // its change follows
      const auto fresh = view.fresh();
      Status outcome;
      if (fresh.size() == size_) {
        outcome = check_lengths(fresh);
      } else if (auto gone = who_is_gone(view)) {
        outcome = {Code::kPeerLost,
                   fmt::format("rank {} ({}) is gone: its lease ended", gone->rank, gone->member)};
      } else {
        return Status::ok();
      }
      MEMSPAN_TRY_ASSIGN(const bool is_written, swap(view, outcome, deadline_), "deciding");
      if (is_written) return Status::ok();
    }
  }

  // A caller that waited here, or one of the last epoch if this member was also in it.
  std::optional<EpochCaller> who_is_gone(const EpochView& view) const {
    for (const auto& [rank, caller] : gone_)
      if (!view.slots.contains(rank) && !consumed_.contains(caller.nonce)) return caller;
    if (kind_ == Kind::kCreateGroup) return std::nullopt;
    std::optional<EpochCaller> gone;
    bool was_in_it = false;
    for (const EpochCaller& caller : view.decision.last) {
      const auto slot = view.slots.find(caller.rank);
      if (slot == view.slots.end())
        gone = gone ? gone : caller;
      else if (slot->second.caller.lease != caller.lease)
        return std::nullopt;  // other callers use this name now
      was_in_it = was_in_it || caller.lease == store_.lease();
    }
    return was_in_it ? gone : std::nullopt;
  }

  // Writes the decision about all waiting callers of the view. False if a newer one exists.
  Result<bool> swap(const EpochView& view, const Status& outcome, const Deadline& deadline) {
    EpochDecision next = view.next_decision();
    next.code = outcome.code();
    next.message = outcome.message();
    for (const auto& [rank, slot] : view.fresh()) {
      next.decided.push_back(slot.caller);
      next.consumed.insert(slot.caller.nonce);
    }
    if (outcome.is_ok()) next.last = next.decided;
    const std::string wanted = next.encode();
    auto now = store_.compare_and_swap(decision_key(), view.decision_text, wanted, deadline);
    if (!now.is_ok()) return now.status();
    return *now == wanted;
  }

  void note(const EpochSlot& slot) {
    if (slot.state == EpochSlot::State::kFilled) {
      bytes_[slot.caller.nonce] = slot.bytes;
      came_.emplace(slot.caller.rank, slot.caller.nonce);
    }
    seen_[slot.caller.rank] = slot;
  }

  void note(const EpochDecision& decision) {
    consumed_.insert(decision.consumed.begin(), decision.consumed.end());
  }

  // True when the epoch is decided.
  Result<bool> take(const StoreChange& change) {
    if (change.key == decision_key()) {
      MEMSPAN_TRY_ASSIGN(EpochDecision decision, EpochDecision::decode(change.value), "a decision");
      note(decision);
      if (!decision.concerns(mine_.caller.nonce)) return false;
      decision_ = std::move(decision);
      return true;
    }
    if (change.event == StoreEvent::kRemoved) {
      // Judge by the order of the changes, because a view may be newer: a caller that gave up
      // emptied its slot.
      MEMSPAN_TRY_ASSIGN(const int rank, rank_in_key(change.key, prefix_ + "slot/"), "a slot");
      if (const auto slot = seen_.extract(rank);
          !slot.empty() && slot.mapped().state == EpochSlot::State::kFilled)
        gone_[rank] = slot.mapped().caller;
      MEMSPAN_PASS(decide());
      return has_left();
    }
    MEMSPAN_TRY_ASSIGN(const EpochSlot slot, EpochSlot::decode(change.value), "a slot");
    note(slot);
    return false;
  }

  // leave_allgather() has removed this caller's slot; a decision concerns only callers with a slot.
  bool has_left() {
    const auto own = gone_.find(rank_);
    if (own == gone_.end() || own->second.nonce != mine_.caller.nonce) return false;
    decision_.code = Code::kPeerLost;
    decision_.message = fmt::format("rank {} ({}) is gone: it left", rank_, store_.member());
    return true;
  }

  Result<Outcome> finish() {
    MEMSPAN_PASS(empty_slot());
    if (decision_.code != Code::kOk) return Status(decision_.code, decision_.message);
    Outcome outcome{.callers = decision_.decided, .contributions = {}};
    for (const EpochCaller& caller : decision_.decided)
      outcome.contributions.push_back(bytes_[caller.nonce]);
    return outcome;
  }

  // The empty slot shows that this caller still exists.
  Status empty_slot() {
    EpochSlot empty = mine_;
    empty.state = EpochSlot::State::kEmpty;
    empty.length = 0;
    empty.bytes.clear();
    return store_
        .compare_and_swap(slot_key(), mine_.encode(), empty.encode(), Deadline::after(kWithdrawal),
                          KeyLife::kLease)
        .status();
  }

  // A new decision after the slot is empty keeps others from completing the epoch by an older view.
  Result<Outcome> give_up() {
    std::erase_if(came_, [&](const auto& came) { return consumed_.contains(came.second); });
    const Status why = end_of_wait(missing_ranks(size_, came_));
    const Deadline deadline = Deadline::after(kWithdrawal);
    MEMSPAN_PASS(empty_slot());
    for (;;) {
      MEMSPAN_TRY_ASSIGN(EpochView view, look(deadline), "giving up");
      if (view.decision.concerns(mine_.caller.nonce)) {
        decision_ = view.decision;
        return finish();
      }
      const std::string wanted = view.next_decision().encode();
      MEMSPAN_TRY_ASSIGN(
          const std::string now,
          store_.compare_and_swap(decision_key(), view.decision_text, wanted, deadline),
          "giving up");
      if (now == wanted) return why;
    }
  }

  KeyValueStore& store_;
  const Kind kind_;
  const std::string prefix_;
  const int rank_;
  const std::uint32_t size_;
  const Deadline deadline_;
  ChangeQueue changes_;
  EpochSlot mine_;
  EpochDecision decision_;                      // the one about this call
  std::map<int, EpochSlot> seen_;               // each rank's slot as it was last seen
  std::map<int, EpochCaller> gone_;             // callers that waited when their slots were removed
  std::map<int, std::uint64_t> came_;           // ranks that were seen waiting, with the nonce
  std::set<std::uint64_t> consumed_;            // nonces whose epoch is over, as far as was seen
  std::map<std::uint64_t, std::string> bytes_;  // by nonce, of all that were seen waiting
};

}  // namespace

Result<std::vector<std::string>> allgather(KeyValueStore& store, std::string_view name, int rank,
                                           int size, std::string_view mine, Deadline deadline) {
  if (CollectiveService* service = store.collectives())
    return service->allgather(name, rank, size, mine, deadline);
  MEMSPAN_TRY(check_place(rank, size), "all-gather");
  MEMSPAN_TRY(
      check_contributions(mine.size() + sizeof(std::uint32_t), static_cast<std::uint32_t>(size)),
      "all-gather");
  // Any number of single callers may use one name at the same time.
  if (size == 1) return std::vector<std::string>{std::string(mine)};
  EpochCall call(store, Kind::kAllgather, fmt::format("{}/allgather/", name), rank, size, deadline);
  auto outcome = call.run(new_nonce(), mine);
  if (!outcome.is_ok()) return outcome.status().annotate(fmt::format("all-gather \"{}\"", name));
  return std::move(outcome->contributions);
}

Status leave_allgather(KeyValueStore& store, std::string_view name, Deadline deadline) {
  if (CollectiveService* service = store.collectives()) return service->leave_group(name, deadline);
  const std::string prefix = fmt::format("{}/allgather/", name);
  MEMSPAN_TRY_ASSIGN(const StoreListing listing, store.list(prefix, deadline), "leaving");
  MEMSPAN_TRY_ASSIGN(const EpochView view, EpochView::read(listing, prefix), "leaving");
  for (const auto& [rank, slot] : view.slots)
    if (slot.caller.lease == store.lease())
      MEMSPAN_TRY(store.remove(rank_key(prefix + "slot/", rank), deadline).status(), "leaving");
  return Status::ok();
}

Status barrier(KeyValueStore& store, std::string_view name, int rank, int size, Deadline deadline) {
  return allgather(store, name, rank, size, {}, deadline).status();
}

Result<CreatedGroup> create_group(KeyValueStore& store, std::string_view name, int rank, int size,
                                  std::string_view mine, Deadline deadline) {
  if (CollectiveService* service = store.collectives())
    return service->create_group(name, rank, size, mine, deadline);
  MEMSPAN_TRY(check_place(rank, size), "creating a group");
  const std::string prefix = fmt::format("{}/create/", name);
  const std::uint64_t nonce = new_nonce();
  GroupMembers members{.alive_prefix = fmt::format("{}/alive/", name), .members = {}};
  // Set before others rely on this member, so that they notice its end from the first moment.
  const std::string alive = members.alive_key(nonce);
  const GroupPresence presence{
      .size = static_cast<std::uint32_t>(size), .lease = store.lease(), .member = store.member()};
  MEMSPAN_TRY(store.set(alive, presence.encode(), deadline, KeyLife::kLease), "creating a group");
  EpochCall call(store, Kind::kCreateGroup, prefix, rank, size, deadline);
  auto outcome = call.run(nonce, mine);
  if (!outcome.is_ok()) {
    static_cast<void>(store.remove(alive, Deadline::after(kWithdrawal)));
    return outcome.status().annotate(fmt::format("creating the group \"{}\"", name));
  }
  for (const EpochCaller& caller : outcome->callers)
    members.members.push_back({.nonce = caller.nonce, .name = caller.member});
  CreatedGroup created{.name = fmt::format("{}#{:016x}", name, outcome->callers.front().nonce),
                       .contributions = std::move(outcome->contributions)};
  MEMSPAN_TRY(store.set(members_key(created.name), members.encode(), deadline), "creating a group");
  return created;
}

}  // namespace memspan
