// SPDX-License-Identifier: Apache-2.0
#include "pgas/call_signature.h"

#include <fmt/format.h>

#include <iterator>

namespace memspan::inline pgas {

MEMSPAN_REMEDY(kCallsDiffer, "calls-differ",
               "All members must make the same collective calls with the same arguments.",
               "Look for a branch or a size that depends on the rank. SHMEM_DEBUG=1 checks more.");

namespace {

std::string text_of(const SignatureField& field, std::uint64_t value) {
  if (field.describe != nullptr) return field.describe(value);
  return std::to_string(static_cast<std::int64_t>(value));
}

// Names the call in the upper bits of CollectiveSignature::encode().
const char* name_of_call(std::uint64_t kind_and_barrier) {
  constexpr const char* kNames[] = {"another one",  "a broadcast", "a collect", "an alltoall",
                                    "an alltoalls", "a reduction", "a scan"};
  const std::uint64_t kind = kind_and_barrier >> 6;
  return kNames[kind < std::size(kNames) ? kind : 0];
}

}  // namespace

Status compare_signatures(std::span<const SignatureField> mine,
                          std::span<const std::uint64_t> words, int peer,
                          const SignatureScope& scope) {
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (words[i] != mine[i].value)
      return {Code::kInvalidArgument,
              fmt::format("{} is {} here and {} on {} {}; all members of a {} make the same calls "
                          "in the same order and give the same{}",
                          mine[i].name, text_of(mine[i], mine[i].value), text_of(mine[i], words[i]),
                          scope.peer, peer, scope.all, kCallsDiffer)};
  return Status::ok();
}

Status CollectiveSignature::explain_difference(std::uint64_t mine, std::uint64_t other, int peer) {
  const CollectiveSignature here = decode(mine);
  const CollectiveSignature there = decode(other);
  const SignatureField fields[] = {{"the call", mine >> 54, name_of_call},
                                   {"PE_root", static_cast<std::uint64_t>(here.root)},
                                   {"the size of the elements in bytes", here.bytes}};
  const std::uint64_t words[] = {other >> 54, static_cast<std::uint64_t>(there.root), there.bytes};
  return compare_signatures(fields, words, peer);
}

}  // namespace memspan::inline pgas
