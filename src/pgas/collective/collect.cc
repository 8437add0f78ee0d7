// SPDX-License-Identifier: Apache-2.0
#include "pgas/collective/collective.h"
#include "pgas/collective/exchange.h"

namespace memspan::pgas {
namespace {

std::byte* at(void* base, std::size_t offset) {
  return static_cast<std::byte*>(base) + offset;
}

Status fcollect_by_scratch(Team& team, const char* what, void* dest, const void* source,
                           std::size_t bytes) {
  copy_bytes(team.my_scratch(), source, bytes);
  MEMSPAN_PASS(team.meet_alike(what, {CollectiveKind::kCollect, bytes}));
  for (int member = 0; member < team.size(); ++member)
    copy_bytes(at(dest, static_cast<std::size_t>(member) * bytes), team.scratch(member), bytes);
  return Status::ok();
}

// dest is ready on all members before anybody's call, so nobody has to ask.
Status push_to_all(Team& team, void* dest, const void* source, std::size_t bytes) {
  for (int i = 0; i < team.size(); ++i)
    MEMSPAN_PASS(push(team, member_after(team, i), dest, source, bytes));
  return complete_pushes(team);
}

}  // namespace

Status fcollect(Team& team, const char* what, void* dest, const void* source, std::size_t bytes) {
  if (bytes <= team.scratch_bytes()) return fcollect_by_scratch(team, what, dest, source, bytes);
  MEMSPAN_PASS(
      push_to_all(team, at(dest, static_cast<std::size_t>(team.index()) * bytes), source, bytes));
  return team.meet_alike(what, {CollectiveKind::kCollect, bytes});
}

Status collect(Team& team, const char* what, void* dest, const void* source, std::size_t bytes) {
  const std::uint64_t mine[] = {bytes};
  MEMSPAN_PASS(team.meet(what, mine, 1));
  std::size_t before = 0;
  for (int member = 0; member < team.index(); ++member) before += team.word(member, 0);
  MEMSPAN_PASS(push_to_all(team, at(dest, before), source, bytes));
  return team.meet(what);
}

}  // namespace memspan::pgas
