// SPDX-License-Identifier: Apache-2.0
#include "pgas/collective/prefix_reduction.h"

#include <cstring>

#include "pgas/collective/pushes.h"

namespace memspan::pgas {
namespace {

// copy_of(member) is where that member's elements can be read until it is called again.
template <typename CopyOf>
void combine(const PrefixReduction& prefix, void* dest, std::size_t bytes, CopyOf copy_of) {
  if (prefix.members == 0) {
    std::memset(dest, 0, bytes);
    return;
  }
  copy_bytes(dest, copy_of(0), bytes);
  for (int member = 1; member < prefix.members; ++member)
    prefix.kernel.accumulate(dest, copy_of(member), bytes / prefix.kernel.bytes);
}

// The sources of members member_of(0), member_of(1), ...
template <typename MemberOf>
Status reduce_copies(const PrefixReduction& prefix, void* dest, const void* source,
                     std::size_t bytes, MemberOf member_of) {
  const Team& team = prefix.team;
  const RouteTable& table = team.world().routes();
  const SymmetricRegion& region = table.region_of(source);
  alignas(kCacheLine) std::byte copy[kPieceBytes];
  Status status;
  combine(prefix, dest, bytes, [&](int i) -> const void* {
    const Route& route = region.routes[team.peer_of(member_of(i))];
    if (route.is_direct()) return route.address(source);
    if (Status got = get(table, route, copy, source, bytes); !got.is_ok()) status = got;
    return copy;
  });
  return status;
}

}  // namespace

Status reduce_in_flags(const PrefixReduction& prefix, void* dest, const void* source,
                       std::size_t bytes) {
  Team& team = prefix.team;
  std::uint64_t words[kSignatureWord] = {};
  copy_bytes(words, source, bytes);
  const auto used = static_cast<int>((bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  MEMSPAN_PASS(team.barrier_checked(prefix.what, {prefix.kind, bytes}, words, used));
  std::uint64_t result[kSignatureWord] = {};
  combine(prefix, result, bytes, [&](int member) {
    for (int i = 0; i < used; ++i) words[i] = team.word(member, i);
    return words;
  });
  copy_bytes(dest, result, bytes);
  return Status::ok();
}

Status reduce_eagerly(const PrefixReduction& prefix, void* dest, const void* source,
                      std::size_t bytes) {
  Team& team = prefix.team;
  MEMSPAN_PASS(team.make_room(prefix.what));
  copy_bytes(team.my_eager_buffer(), source, bytes);
  MEMSPAN_PASS(team.barrier_checked(prefix.what, {prefix.kind, bytes}));
  combine(prefix, dest, bytes, [&](int member) { return team.eager_buffer(member); });
  return Status::ok();
}

Status reduce_sources(const PrefixReduction& prefix, void* dest, const void* source,
                      std::size_t bytes) {
  return reduce_copies(prefix, dest, source, bytes, [](int member) { return member; });
}

Status reduce_sources(const PrefixReduction& all, std::span<const int> members, void* dest,
                      const void* source, std::size_t bytes) {
  PrefixReduction some = all;
  some.members = static_cast<int>(members.size());
  return reduce_copies(some, dest, source, bytes,
                       [&](int i) { return members[static_cast<std::size_t>(i)]; });
}

}  // namespace memspan::pgas
