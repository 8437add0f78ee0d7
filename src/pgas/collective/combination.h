// SPDX-License-Identifier: Apache-2.0
// Elements of the first so many members of a team combined in member order: what reductions (all
// members) and scans (those up to this one) are made of. Three ways to get at them, by size.
#pragma once

#include <cstddef>

#include "core/status.h"
#include "pgas/collective/collective.h"
#include "pgas/team.h"

namespace memspan::pgas {

struct Combination {
  Team& team;
  const char* what;
  const Reduction& reduction;
  CollectiveKind kind;
  int terms;  // members 0 to terms - 1; none give zeros

  // The bytes of as many whole elements as fit; one does (operators.h).
  std::size_t whole_elements(std::size_t room) const {
    return room / reduction.element_bytes * reduction.element_bytes;
  }
};

// What the words of an arrival flag carry beside what all members give alike.
inline constexpr std::size_t kFlagBytes = kAlikeWord * sizeof(std::uint64_t);
// A piece that stays in the first-level cache.
inline constexpr std::size_t kPieceBytes = 16 << 10;

// Collective: one meeting, after which all have read `source`, which may be `dest`.
Status combine_in_flags(const Combination& combination, void* dest, const void* source,
                        std::size_t bytes);  // up to kFlagBytes
Status combine_by_scratch(const Combination& combination, void* dest, const void* source,
                          std::size_t bytes);  // up to team.scratch_bytes()

// Not collective: reads the members' `source`, which nobody changes meanwhile. `dest` is not it.
Status combine_sources(const Combination& combination, void* dest, const void* source,
                       std::size_t bytes);  // up to kPieceBytes

}  // namespace memspan::pgas
