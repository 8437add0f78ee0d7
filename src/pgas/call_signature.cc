// SPDX-License-Identifier: Apache-2.0
#include "pgas/call_signature.h"

#include <fmt/format.h>

#include <string>

#include "core/remedy.h"

namespace memspan {

MEMSPAN_REMEDY(kCallsDiffer, "calls-differ",
               "All members must make the same collective calls with the same arguments.",
               "Look for a branch or a size that depends on the rank. SHMEM_DEBUG=1 checks more.");

namespace {

std::string text_of(const SignatureField& field, std::uint64_t value) {
  if (field.describe != nullptr) return field.describe(value);
  return std::to_string(static_cast<std::int64_t>(value));
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

}  // namespace memspan
