// SPDX-License-Identifier: Apache-2.0
// Three ways by size: in the arrival flag itself (a word or a few), through eager buffers (each
// member combines all copies), and by slices (each member combines one slice of all sources and
// pushes the result to all). All combine in member order, so all members get the same bits.
#include <algorithm>

#include "pgas/collective/among_nodes.h"
#include "pgas/collective/prefix_reduction.h"
#include "pgas/collective/pushes.h"

namespace memspan::pgas {
namespace {

// dest may be source: only this member reads or writes this slice, on every member.
Status reduce_slice(const PrefixReduction& all, std::byte* dest, const std::byte* source,
                    std::size_t bytes) {
  const std::size_t piece = all.whole_elements(kPieceBytes);
  alignas(kCacheLine) std::byte sum[kPieceBytes];
  for (std::size_t done = 0; done < bytes; done += piece) {
    std::size_t now = std::min(piece, bytes - done);
    MEMSPAN_TRY(reduce_sources(all, sum, source + done, now), "reduction");
    for (int i = 0; i < all.team.size(); ++i)
      MEMSPAN_TRY(push(all.team, member_after(all.team, i), dest + done, sum, now), "reduction");
  }
  return complete_pushes(all.team);
}

Status reduce_by_slices(const PrefixReduction& all, std::byte* dest, const std::byte* source,
                        std::size_t bytes) {
  auto members = static_cast<std::size_t>(all.team.size());
  auto index = static_cast<std::size_t>(all.team.index());
  // Slices of whole cache lines, so that no two members write one line.
  const std::size_t line = all.whole_elements(kCacheLine);
  const std::size_t slice = (bytes / members + line) / line * line;
  const std::size_t first = std::min(bytes, index * slice);
  const std::size_t last = std::min(bytes, first + slice);
  MEMSPAN_PASS(all.team.barrier_checked(all.what, {all.kind, bytes}));
  if (all.team.nodes() != nullptr) return reduce_among_nodes(all, dest, source, bytes);
  MEMSPAN_PASS(reduce_slice(all, dest + first, source + first, last - first));
  return all.team.barrier(all.what);
}

}  // namespace

Status reduce(Team& team, const char* what, void* dest, const void* source, std::size_t count,
              const ReductionKernel& kernel) {
  const PrefixReduction all{team, what, kernel, CollectiveKind::kReduce, team.size()};
  const std::size_t bytes = count * kernel.bytes;
  if (bytes <= kFlagBytes) return reduce_in_flags(all, dest, source, bytes);
  if (bytes <= team.eager_bytes()) return reduce_eagerly(all, dest, source, bytes);
  return reduce_by_slices(all, static_cast<std::byte*>(dest), static_cast<const std::byte*>(source),
                          bytes);
}

}  // namespace memspan::pgas
