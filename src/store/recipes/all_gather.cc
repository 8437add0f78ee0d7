// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/all_gather.h"

#include <fmt/format.h>

#include "store/recipes/epoch_call.h"
#include "store/recipes/store_group.h"

namespace memspan {

Result<std::vector<std::string>> allgather(KeyValueStore& store, std::string_view name, int rank,
                                           int size, std::string_view mine, Deadline deadline,
                                           std::string_view alive) {
  MEMSPAN_TRY(check_place(rank, size), "all-gather");
  MEMSPAN_TRY(Contribution(mine, size).check(rank, size), "all-gather");
  // Any number of single callers may use one name at the same time.
  if (size == 1) return std::vector<std::string>{std::string(mine)};
  EpochCall call(store, EpochKind::kAllgather, name, rank, size, deadline, alive);
  MEMSPAN_TRY_ASSIGN(auto decision, call.run(new_nonce(), mine),
                     fmt::format("all-gather \"{}\"", name));
  return std::move(decision.parts);
}

Status leave_allgather(KeyValueStore& store, std::string_view name, Deadline deadline) {
  const EpochKeys keys = EpochKeys::of(EpochKind::kAllgather, name);
  const auto leave = [&](const std::string& key, const EpochSlot& slot) {
    if (slot.caller.lease != store.lease()) return Status::ok();
    return store.remove(key, deadline).status().annotate("leaving");
  };
  MEMSPAN_TRY_ASSIGN(const StoreListing slots, store.list(keys.slots_prefix(), deadline),
                     "leaving");
  bool may_be_consumed = false;
  for (const auto& [key, value] : slots) {
    MEMSPAN_TRY_ASSIGN(const EpochSlot slot, EpochSlot::decode(value), "leaving");
    may_be_consumed = may_be_consumed || slot.state != EpochSlot::State::kEmpty;
    MEMSPAN_PASS(leave(key, slot));
  }
  const auto text = store.get_now(keys.slot(0), deadline);
  if (text.code() == Code::kNotFound) return Status::ok();
  if (!text.is_ok()) return text.status();
  MEMSPAN_TRY_ASSIGN(const EpochSlot first, EpochSlot::decode(*text), "leaving");
  // Rank 0 reads there which slots are of epochs that are over; otherwise it ends with the lease.
  if (first.caller.lease == store.lease() && !may_be_consumed)
    MEMSPAN_TRY(store.remove(keys.decision(), deadline).status(), "leaving");
  return leave(keys.slot(0), first);
}

Status barrier(KeyValueStore& store, std::string_view name, int rank, int size, Deadline deadline) {
  return allgather(store, name, rank, size, {}, deadline).status();
}

Result<CreatedGroup> create_group(KeyValueStore& store, std::string_view name, int rank, int size,
                                  std::string_view mine, Deadline deadline) {
  MEMSPAN_TRY(check_place(rank, size), "creating a group");
  const std::uint64_t nonce = new_nonce();
  // Set before others rely on this member, so that they notice its end from the first moment.
  const GroupFounders founders{.alive_prefix = created_alive_prefix(name), .members = {}};
  const std::string alive = founders.alive_key(nonce);
  MEMSPAN_TRY(store.set(alive, store.member(), deadline, KeyLife::kLease), "creating a group");
  EpochCall call(store, EpochKind::kCreateGroup, name, rank, size, deadline);
  auto decision = call.run(nonce, mine);
  if (!decision.is_ok()) {
    static_cast<void>(store.remove(alive, Deadline::after(kWithdrawal)));
    return decision.status().annotate(fmt::format("creating the group \"{}\"", name));
  }
  return CreatedGroup{.name = created_group_name(name, *decision),
                      .alive = alive,
                      .contributions = std::move(decision->parts)};
}

}  // namespace memspan
