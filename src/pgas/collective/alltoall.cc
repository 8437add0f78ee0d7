// SPDX-License-Identifier: Apache-2.0
#include "pgas/collective/collective.h"
#include "pgas/collective/pushes.h"

namespace memspan::pgas {
namespace {

std::ptrdiff_t signed_product(std::size_t a, std::ptrdiff_t b) {
  return static_cast<std::ptrdiff_t>(a) * b;
}

}  // namespace

Status alltoall(Team& team, const char* what, void* dest, const void* source,
                std::size_t block_bytes) {
  auto* to = static_cast<std::byte*>(dest) + static_cast<std::size_t>(team.index()) * block_bytes;
  for (int i = 0; i < team.size(); ++i) {
    int member = member_after(team, i);
    auto* from =
        static_cast<const std::byte*>(source) + static_cast<std::size_t>(member) * block_bytes;
    MEMSPAN_PASS(push(team, member, to, from, block_bytes));
  }
  MEMSPAN_PASS(complete_pushes(team));
  return team.barrier_checked(what, {CollectiveKind::kAlltoall, block_bytes});
}

Status alltoalls(Team& team, const char* what, void* dest, const void* source,
                 std::ptrdiff_t dest_stride, std::ptrdiff_t source_stride, std::size_t count,
                 std::size_t element_bytes) {
  const RouteTable& table = team.world().routes();
  auto element = static_cast<std::ptrdiff_t>(element_bytes);
  auto mine = static_cast<std::size_t>(team.index());
  auto* to = static_cast<std::byte*>(dest) + signed_product(mine * count, dest_stride) * element;
  const Strides strides{dest_stride, source_stride, 1, count};
  for (int i = 0; i < team.size(); ++i) {
    int member = member_after(team, i);
    auto* from = static_cast<const std::byte*>(source) +
                 signed_product(static_cast<std::size_t>(member) * count, source_stride) * element;
    MEMSPAN_PASS(put_strided(table, table.route_of(to, team.peer_of(member)), to, from, strides,
                             element_bytes));
  }
  MEMSPAN_PASS(complete_pushes(team));
  return team.barrier_checked(what, {CollectiveKind::kAlltoalls, count * element_bytes});
}

}  // namespace memspan::pgas
