// SPDX-License-Identifier: Apache-2.0
#include "pgas/collective/among_nodes.h"
#include "pgas/collective/collective.h"
#include "pgas/collective/pushes.h"

namespace memspan::pgas {
namespace {

std::byte* at(void* base, std::size_t offset) {
  return static_cast<std::byte*>(base) + offset;
}

Status fcollect_eagerly(Team& team, const char* what, void* dest, const void* source,
                        std::size_t bytes) {
  MEMSPAN_PASS(team.make_room(what));
  copy_bytes(team.my_eager_buffer(), source, bytes);
  MEMSPAN_PASS(team.barrier_checked(what, {CollectiveKind::kCollect, bytes}));
  for (int member = 0; member < team.size(); ++member)
    copy_bytes(at(dest, static_cast<std::size_t>(member) * bytes), team.eager_buffer(member),
               bytes);
  return Status::ok();
}

// dest is ready on all members before any call, so no check is needed.
Status push_to_all(Team& team, void* dest, const void* source, std::size_t bytes) {
  for (int i = 0; i < team.size(); ++i)
    MEMSPAN_PASS(push(team, member_after(team, i), dest, source, bytes));
  return complete_pushes(team);
}

// The slots if all members give as much, and if each gave its number of bytes in the barrier just
// over.
std::vector<Slot> slots_of(const Team& team, std::size_t bytes) {
  std::vector<Slot> slots;
  slots.reserve(static_cast<std::size_t>(team.size()));
  for (int member = 0; member < team.size(); ++member)
    slots.push_back({static_cast<std::size_t>(member) * bytes, bytes});
  return slots;
}
std::vector<Slot> slots_of_words(const Team& team) {
  std::vector<Slot> slots;
  std::size_t before = 0;
  for (int member = 0; member < team.size(); ++member) {
    slots.push_back({before, team.word(member, 0)});
    before += team.word(member, 0);
  }
  return slots;
}

}  // namespace

Status fcollect(Team& team, const char* what, void* dest, const void* source, std::size_t bytes) {
  if (bytes <= team.eager_bytes()) return fcollect_eagerly(team, what, dest, source, bytes);
  if (team.nodes() != nullptr) {
    MEMSPAN_PASS(team.barrier_checked(what, {CollectiveKind::kCollect, bytes}));
    return gather_among_nodes(team, what, at(dest, 0), source, slots_of(team, bytes));
  }
  MEMSPAN_PASS(
      push_to_all(team, at(dest, static_cast<std::size_t>(team.index()) * bytes), source, bytes));
  return team.barrier_checked(what, {CollectiveKind::kCollect, bytes});
}

Status collect(Team& team, const char* what, void* dest, const void* source, std::size_t bytes) {
  const std::uint64_t mine[] = {bytes};
  MEMSPAN_PASS(team.barrier(what, mine, 1));
  if (team.nodes() != nullptr)
    return gather_among_nodes(team, what, at(dest, 0), source, slots_of_words(team));
  std::size_t before = 0;
  for (int member = 0; member < team.index(); ++member) before += team.word(member, 0);
  MEMSPAN_PASS(push_to_all(team, at(dest, before), source, bytes));
  return team.barrier(what);
}

}  // namespace memspan::pgas
