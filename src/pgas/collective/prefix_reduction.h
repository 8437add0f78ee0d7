// SPDX-License-Identifier: Apache-2.0
// Combines elements of the first so many members of a team in member order: for reductions (all
// members) and scans (those up to this one). Three ways to get at them, by size.
#pragma once

#include <cstddef>
#include <span>

#include "core/status.h"
#include "pgas/collective/collective.h"
#include "pgas/team.h"

namespace memspan::pgas {

struct PrefixReduction {
  Team& team;
  const char* what;
  const ReductionKernel& kernel;
  CollectiveKind kind;
  int members;  // members 0 to members - 1; none give zeros

  // The bytes of as many whole elements as fit; one does (kernels.h).
  std::size_t whole_elements(std::size_t room) const { return room / kernel.bytes * kernel.bytes; }
};

// The bytes that the words of a flag carry beside the signature.
inline constexpr std::size_t kFlagBytes = kSignatureWord * sizeof(std::uint64_t);
// A piece that stays in the first-level cache.
inline constexpr std::size_t kPieceBytes = 16 << 10;

// Collective: one barrier, after which all have read `source`, which may be `dest`.
Status reduce_in_flags(const PrefixReduction& prefix, void* dest, const void* source,
                       std::size_t bytes);  // up to kFlagBytes
Status reduce_eagerly(const PrefixReduction& prefix, void* dest, const void* source,
                      std::size_t bytes);  // up to team.eager_bytes()

// Not collective: reads the members' `source`, which must not change in the call. `dest` is not it.
Status reduce_sources(const PrefixReduction& prefix, void* dest, const void* source,
                      std::size_t bytes);  // up to kPieceBytes
// For these members, in their order.
Status reduce_sources(const PrefixReduction& all, std::span<const int> members, void* dest,
                      const void* source, std::size_t bytes);

}  // namespace memspan::pgas
