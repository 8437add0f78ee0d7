// SPDX-License-Identifier: Apache-2.0
// Two ways: in pieces through the eager buffers or the flags, one barrier each; or, when the
// sources are large and no member overwrites its own, by reading the sources of all members before.
#include <algorithm>

#include "pgas/collective/prefix_reduction.h"
#include "pgas/collective/pushes.h"

namespace memspan::pgas {
namespace {

// Each piece is read from all sources before a member writes it to dest.
Status scan_in_pieces(const PrefixReduction& prefix, std::byte* dest, const std::byte* source,
                      std::size_t bytes) {
  const std::size_t piece = prefix.whole_elements(std::max(kFlagBytes, prefix.team.eager_bytes()));
  for (std::size_t done = 0; done < bytes; done += piece) {
    const std::size_t now = std::min(piece, bytes - done);
    const auto combine = now <= kFlagBytes ? reduce_in_flags : reduce_eagerly;
    MEMSPAN_PASS(combine(prefix, dest + done, source + done, now));
  }
  return Status::ok();
}

// Piece by piece, so that the sum stays in a cache while the sources stream by.
Status scan_by_reading(const PrefixReduction& prefix, std::byte* dest, const std::byte* source,
                       std::size_t bytes) {
  const std::size_t piece = prefix.whole_elements(kPieceBytes);
  for (std::size_t done = 0; done < bytes; done += piece)
    MEMSPAN_TRY(reduce_sources(prefix, dest + done, source + done, std::min(piece, bytes - done)),
                "scan");
  return prefix.team.barrier(prefix.what);
}

}  // namespace

Status scan(Team& team, const char* what, void* dest, const void* source, ScanKind kind,
            std::size_t count, const ReductionKernel& kernel) {
  const int members = team.index() + (kind == ScanKind::kInclusive ? 1 : 0);
  const PrefixReduction prefix{team, what, kernel, CollectiveKind::kScan, members};
  auto* to = static_cast<std::byte*>(dest);
  const auto* from = static_cast<const std::byte*>(source);
  const std::size_t bytes = count * kernel.bytes;
  if (bytes <= std::max(kFlagBytes, team.eager_bytes()))
    return scan_in_pieces(prefix, to, from, bytes);
  const std::uint64_t is_in_place[] = {dest == source ? 1u : 0u};
  MEMSPAN_PASS(team.barrier_checked(what, {prefix.kind, bytes}, is_in_place, 1));
  for (int member = 0; member < team.size(); ++member)
    if (team.word(member, 0) != 0) return scan_in_pieces(prefix, to, from, bytes);
  return scan_by_reading(prefix, to, from, bytes);
}

}  // namespace memspan::pgas
