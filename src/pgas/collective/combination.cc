// SPDX-License-Identifier: Apache-2.0
#include "pgas/collective/combination.h"

#include <cstring>

#include "pgas/collective/exchange.h"

namespace memspan::pgas {
namespace {

// copy_of(member) is where that member's elements can be read until it is called again.
template <typename CopyOf>
void combine(const Combination& combination, void* dest, std::size_t bytes, CopyOf copy_of) {
  if (combination.terms == 0) {
    std::memset(dest, 0, bytes);
    return;
  }
  copy_bytes(dest, copy_of(0), bytes);
  for (int member = 1; member < combination.terms; ++member)
    combination.reduction.combine(dest, copy_of(member),
                                  bytes / combination.reduction.element_bytes);
}

}  // namespace

Status combine_in_flags(const Combination& combination, void* dest, const void* source,
                        std::size_t bytes) {
  Team& team = combination.team;
  std::uint64_t words[kAlikeWord] = {};
  copy_bytes(words, source, bytes);
  const auto used = static_cast<int>((bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  MEMSPAN_PASS(team.meet_alike(combination.what, {combination.kind, bytes}, words, used));
  std::uint64_t result[kAlikeWord] = {};
  combine(combination, result, bytes, [&](int member) {
    for (int i = 0; i < used; ++i) words[i] = team.word(member, i);
    return words;
  });
  copy_bytes(dest, result, bytes);
  return Status::ok();
}

Status combine_by_scratch(const Combination& combination, void* dest, const void* source,
                          std::size_t bytes) {
  Team& team = combination.team;
  copy_bytes(team.my_scratch(), source, bytes);
  MEMSPAN_PASS(team.meet_alike(combination.what, {combination.kind, bytes}));
  combine(combination, dest, bytes, [&](int member) { return team.scratch(member); });
  return Status::ok();
}

Status combine_sources(const Combination& combination, void* dest, const void* source,
                       std::size_t bytes) {
  const Team& team = combination.team;
  const RouteTable& table = team.world().routes();
  const SymmetricRegion& region = table.region_of(source);
  alignas(kCacheLine) std::byte copy[kPieceBytes];
  Status status;
  combine(combination, dest, bytes, [&](int member) -> const void* {
    const Route& route = region.routes[team.peer_of(member)];
    if (route.is_direct()) return route.address(source);
    if (Status got = get(table, route, copy, source, bytes); !got.is_ok()) status = got;
    return copy;
  });
  return status;
}

}  // namespace memspan::pgas
