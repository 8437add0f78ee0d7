// SPDX-License-Identifier: Apache-2.0
// The values that all members of a team must give equally in a call. They travel with a barrier, so
// that a mistake is found before data moves. The message names the value and both sides.
//
// Callers carry the values in their own words (packed ones, a barrier's payload) and give them here
// as fields to compare. Messages name a peer "PE 3" of a job or "member 3" of a group.
#pragma once

#include <cstdint>
#include <span>

#include "core/status.h"
#include "node/segment.h"

namespace memspan::inline pgas {

extern const char kCallsDiffer[];  // the end of a message (core/status.h)

// A value.
struct SignatureField {
  const char* name;  // "PE_root"
  std::uint64_t value = 0;
  // The meaning of the number for a person; null: it is shown as a number with a sign.
  const char* (*describe)(std::uint64_t value) = nullptr;
};

// How messages name a peer and all callers.
struct SignatureScope {
  const char* peer = "PE";
  const char* all = "team";
};

// `words` are what `peer` gave for the fields `mine`, in the same order. kInvalidArgument for the
// first that differs: "PE_root is 1 here and 2 on PE 3; ...".
Status compare_signatures(std::span<const SignatureField> mine,
                          std::span<const std::uint64_t> words, int peer,
                          const SignatureScope& scope = {});

inline constexpr std::size_t kMostSignatureFields = 8;

// The first member of `team` whose first payload words of the barrier just over are not `mine`; -1
// if all have given the same. If any two members differ, every member finds a different one.
template <typename Team>
int find_different(const Team& team, std::span<const std::uint64_t> mine) {
  for (int member = 0; member < team.size(); ++member)
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (team.word(member, static_cast<int>(i)) != mine[i]) return member;
  return -1;
}

// Compares `mine` with what every member of `team` gave as the first payload words of the barrier
// just over. Any two that differ make all members fail.
template <typename Team>
Status compare_with_all(const Team& team, std::span<const SignatureField> mine) {
  std::uint64_t words[kMostSignatureFields];
  for (std::size_t i = 0; i < mine.size(); ++i) words[i] = mine[i].value;
  const int other = find_different(team, std::span(words, mine.size()));
  if (other < 0) return Status::ok();
  for (std::size_t i = 0; i < mine.size(); ++i) words[i] = team.word(other, static_cast<int>(i));
  return compare_signatures(mine, {words, mine.size()}, team.peer_of(other));
}

enum class CollectiveKind : std::uint8_t {
  kBroadcast = 1,
  kCollect,
  kAlltoall,
  kAlltoalls,
  kReduce,
  kScan
};

// The values that all members of a collective must give equally, as far as they fit one word. A
// mistake is then found in the barrier that the collective needs anyway.
struct CollectiveSignature {
  CollectiveKind kind;
  std::size_t bytes;  // of a member's elements; modulo 2^40
  int root = 0;

  // Bits: | kind: 4 | barrier: 6 | root: 14 | bytes: 40 |. The barrier's number distinguishes the
  // word from an earlier one.
  std::uint64_t encode(std::uint64_t barrier) const {
    return static_cast<std::uint64_t>(kind) << 60 | (barrier & 0x3f) << 54 |
           static_cast<std::uint64_t>(root) << 40 | (bytes & 0xff'ffff'ffff);
  }
  static CollectiveSignature decode(std::uint64_t signature) {
    return {static_cast<CollectiveKind>(signature >> 60), signature & 0xff'ffff'ffff,
            static_cast<int>(signature >> 40 & 0x3fff)};
  }
  static bool is_of_barrier(std::uint64_t signature, std::uint64_t barrier) {
    return (signature >> 54 & 0x3f) == (barrier & 0x3f);
  }
  // As compare_signatures(), of two words that differ.
  static Status explain_difference(std::uint64_t mine, std::uint64_t other, int peer);
};
static_assert(kMostPeers <= 1 << 14);

}  // namespace memspan::inline pgas
