// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/call.h"

#include <array>
#include <cstring>

#include "pgas/call_signature.h"

namespace memspan::pgas {
namespace {

constexpr std::array<const char*, 10> kNames{
    "barrier",    "broadcast", "all_reduce", "reduce",     "reduce_scatter",
    "all_gather", "gather",    "scatter",    "all_to_all", "map"};

// | call | type + 1 | op + 1 | 8 bits of nothing | root + 1 |, and the bytes.
using Words = std::array<std::uint64_t, kCallWords>;

Words encode(const CallSignature& call) {
  const auto field = [](int number) { return static_cast<std::uint64_t>(number) + 1; };
  return {static_cast<std::uint64_t>(call.call) | field(call.type) << 8 | field(call.op) << 16 |
              field(call.root) << 32,
          call.bytes};
}

const char* name_of_call(std::uint64_t call) {
  return call < kNames.size() ? kNames[call] : "another one";
}

// In the order in which they are compared.
std::array<SignatureField, 5> fields_of(const Words& words) {
  return {{{"the call", words[0] & 0xff, name_of_call},
           {"the size in bytes", words[1]},
           {"the type", (words[0] >> 8 & 0xff) - 1},
           {"the operation", (words[0] >> 16 & 0xff) - 1},
           {"the root", (words[0] >> 32) - 1}}};
}

Status explain_difference(const Team& team, const Words& mine, int member) {
  const auto theirs = fields_of({team.word(member, 0), team.word(member, 1)});
  std::array<std::uint64_t, theirs.size()> values{};
  for (std::size_t i = 0; i < theirs.size(); ++i) values[i] = theirs[i].value;
  return compare_signatures(fields_of(mine), values, member, {"member", "group"});
}

}  // namespace

const char* CallSignature::what() const {
  return kNames[static_cast<std::size_t>(call)];
}

Status checked_barrier(ProcessGroup& group, const CallSignature& signature, const void* data,
                       std::size_t data_bytes) {
  Team& team = group.team();
  const Words mine = encode(signature);
  std::uint64_t words[kPayloadWords] = {mine[0], mine[1]};
  if (data_bytes != 0) std::memcpy(words + kCallWords, data, data_bytes);
  const std::size_t used = kCallWords + (data_bytes + sizeof *words - 1) / sizeof *words;
  MEMSPAN_PASS(team.barrier(signature.what(), words, static_cast<int>(used)));
  const int other = find_different(team, mine);
  return other < 0 ? Status::ok() : explain_difference(team, mine, other);
}

void read_call_data(const ProcessGroup& group, int member, void* data, std::size_t bytes) {
  std::uint64_t words[kPayloadWords - kCallWords];
  for (std::size_t i = 0; i * sizeof *words < bytes; ++i)
    words[i] = group.team().word(member, static_cast<int>(kCallWords + i));
  if (bytes != 0) std::memcpy(data, words, bytes);
}

}  // namespace memspan::pgas
