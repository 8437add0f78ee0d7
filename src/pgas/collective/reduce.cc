// SPDX-License-Identifier: Apache-2.0
// Three ways by size: in the arrival flag itself (a word or a few), through scratch (each member
// combines everybody's copy), and by slices (each member combines one slice of everybody's source
// and pushes the result to all). All combine in member order, so all members get the same bits.
#include <algorithm>

#include "pgas/collective/collective.h"
#include "pgas/collective/exchange.h"

namespace memspan::pgas {
namespace {

constexpr std::size_t kFlagBytes = kMeetingWords * sizeof(std::uint64_t);

// A slice is combined in pieces that stay in the first-level cache.
constexpr std::size_t kPieceBytes = 16 << 10;

Status reduce_in_flags(Team& team, const char* what, void* dest, const void* source,
                       std::size_t count, const Reduction& reduction) {
  std::size_t bytes = count * reduction.element_bytes;
  std::uint64_t words[kMeetingWords] = {};
  copy_bytes(words, source, bytes);
  auto used = static_cast<int>((bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  MEMSPAN_PASS(team.meet(what, words, used));
  std::uint64_t sum[kMeetingWords] = {};
  for (int member = 0; member < team.size(); ++member) {
    for (int i = 0; i < used; ++i) words[i] = team.word(member, i);
    if (member == 0)
      std::memcpy(sum, words, sizeof sum);
    else
      reduction.combine(sum, words, count);
  }
  copy_bytes(dest, sum, bytes);
  return Status::ok();
}

Status reduce_by_scratch(Team& team, const char* what, void* dest, const void* source,
                         std::size_t count, const Reduction& reduction) {
  std::size_t bytes = count * reduction.element_bytes;
  copy_bytes(team.my_scratch(), source, bytes);
  MEMSPAN_PASS(team.meet(what));
  copy_bytes(dest, team.scratch(0), bytes);
  for (int member = 1; member < team.size(); ++member)
    reduction.combine(dest, team.scratch(member), count);
  return Status::ok();
}

// Combines elements [first, first + count) of all sources into `sum`.
Status combine_piece(Team& team, std::byte* sum, std::byte* other, const std::byte* source,
                     std::size_t bytes, const Reduction& reduction) {
  const RouteTable& table = team.world().routes();
  for (int member = 0; member < team.size(); ++member) {
    const Route& route = table.route_of(source, team.peer_of(member));
    const std::byte* from = route.is_direct() ? route.address(source) : other;
    if (!route.is_direct()) MEMSPAN_TRY(get(table, route, other, source, bytes), "reduction");
    if (member == 0)
      copy_bytes(sum, from, bytes);
    else
      reduction.combine(sum, from, bytes / reduction.element_bytes);
  }
  return Status::ok();
}

// dest may be source: only this member reads or writes this slice, on every member.
Status reduce_slice(Team& team, std::byte* dest, const std::byte* source, std::size_t bytes,
                    const Reduction& reduction) {
  std::size_t piece =
      std::max(kPieceBytes / reduction.element_bytes, std::size_t{1}) * reduction.element_bytes;
  alignas(kCacheLine) std::byte sum[kPieceBytes];
  alignas(kCacheLine) std::byte other[kPieceBytes];
  for (std::size_t done = 0; done < bytes; done += piece) {
    std::size_t now = std::min(piece, bytes - done);
    MEMSPAN_TRY(combine_piece(team, sum, other, source + done, now, reduction), "reduction");
    for (int i = 0; i < team.size(); ++i)
      MEMSPAN_TRY(push(team, member_after(team, i), dest + done, sum, now), "reduction");
  }
  return complete_pushes(team);
}

Status reduce_by_slices(Team& team, const char* what, void* dest, const void* source,
                        std::size_t count, const Reduction& reduction) {
  auto members = static_cast<std::size_t>(team.size());
  auto index = static_cast<std::size_t>(team.index());
  // Slices of whole cache lines, so that no two members write one line.
  std::size_t line_elements = std::max(kCacheLine / reduction.element_bytes, std::size_t{1});
  std::size_t slice = (count / members + line_elements) / line_elements * line_elements;
  std::size_t first = std::min(count, index * slice);
  std::size_t last = std::min(count, first + slice);
  MEMSPAN_PASS(team.meet(what));
  MEMSPAN_PASS(reduce_slice(team, static_cast<std::byte*>(dest) + first * reduction.element_bytes,
                            static_cast<const std::byte*>(source) + first * reduction.element_bytes,
                            (last - first) * reduction.element_bytes, reduction));
  return team.meet(what);
}

}  // namespace

Status reduce(Team& team, const char* what, void* dest, const void* source, std::size_t count,
              const Reduction& reduction) {
  std::size_t bytes = count * reduction.element_bytes;
  if (bytes <= kFlagBytes) return reduce_in_flags(team, what, dest, source, count, reduction);
  if (bytes <= team.scratch_bytes())
    return reduce_by_scratch(team, what, dest, source, count, reduction);
  return reduce_by_slices(team, what, dest, source, count, reduction);
}

}  // namespace memspan::pgas
