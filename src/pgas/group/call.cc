// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/call.h"

#include <fmt/format.h>

namespace memspan::inline pgas {
namespace {

constexpr std::array<const char*, 10> kNames{
    "barrier",    "broadcast", "all_reduce", "reduce",     "reduce_scatter",
    "all_gather", "gather",    "scatter",    "all_to_all", "map"};

// The words that a barrier carries:
// | call | type + 1 | op + 1 | 8 bits of nothing | root + 1 |, the bytes, and the data.
struct Payload {
  Payload(const CallSignature& signature, const void* data, std::size_t data_bytes)
      : used(static_cast<int>(kCallWords + (data_bytes + sizeof words[0] - 1) / sizeof words[0])) {
    const auto field = [](int number) { return static_cast<std::uint64_t>(number) + 1; };
    words[0] = static_cast<std::uint64_t>(signature.call) | field(signature.type) << 8 |
               field(signature.op) << 16 | field(signature.root) << 32;
    words[1] = signature.bytes;
    if (data_bytes != 0) std::memcpy(words + kCallWords, data, data_bytes);
  }
  std::span<const std::uint64_t> call() const { return {words, kCallWords}; }

  std::uint64_t words[kPayloadWords] = {};
  int used;
};

const char* name_of_call(std::uint64_t call) {
  return call < kNames.size() ? kNames[call] : "another one";
}

// In the order in which they are compared.
std::array<SignatureField, 5> fields_of(std::span<const std::uint64_t> words) {
  return {{{"the call", words[0] & 0xff, name_of_call},
           {"the size in bytes", words[1]},
           {"the type", (words[0] >> 8 & 0xff) - 1},
           {"the operation", (words[0] >> 16 & 0xff) - 1},
           {"the root", (words[0] >> 32) - 1}}};
}

Status explain_difference(const Team& team, std::span<const std::uint64_t> mine, int member) {
  const std::uint64_t other[] = {team.word(member, 0), team.word(member, 1)};
  const auto theirs = fields_of(other);
  std::array<std::uint64_t, theirs.size()> values{};
  for (std::size_t i = 0; i < theirs.size(); ++i) values[i] = theirs[i].value;
  return compare_signatures(fields_of(mine), values, member, {"member", "group"});
}

}  // namespace

const char* CallSignature::what() const {
  return kNames[static_cast<std::size_t>(call)];
}

Status check_member(const ProcessGroup& group, const char* role, int number, int least) {
  if (number >= least && number < group.size()) return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("the {} is {}, allowed are {} to {}", role, number, least, group.size() - 1)};
}

Status checked_barrier(ProcessGroup& group, const CallSignature& signature, const void* data,
                       std::size_t data_bytes) {
  Team& team = group.team();
  const Payload payload(signature, data, data_bytes);
  MEMSPAN_PASS(team.barrier(signature.what(), payload.words, payload.used));
  const int other = find_different(team, payload.call());
  return other < 0 ? Status::ok() : explain_difference(team, payload.call(), other);
}

Status planned_barrier(ProcessGroup& group, const CallSignature& signature, std::size_t bytes,
                       std::uint64_t mine) {
  DirectReads& reads = group.direct_reads();
  const auto kind = static_cast<std::size_t>(signature.call);
  const std::uint64_t word = reads.announce(kind, bytes, mine);
  MEMSPAN_PASS(checked_barrier(group, signature, &word, sizeof word));
  reads.hear(kind, group.team().word(0, kCallWords));
  return Status::ok();
}

Status broadcast_barrier(ProcessGroup& group, const CallSignature& signature, const void* data,
                         std::size_t data_bytes) {
  Team& team = group.team();
  const Payload payload(signature, data, data_bytes);
  const CollectiveSignature of_team{CollectiveKind::kBroadcast, signature.bytes, signature.root};
  Status met =
      team.barrier_of_root(signature.what(), of_team, signature.root, payload.words, payload.used);
  if (met.is_ok() || met.code() != Code::kInvalidArgument) return met;
  return explain_difference(team, payload.call(), signature.root);
}

void read_call_data(const ProcessGroup& group, int member, void* data, std::size_t bytes) {
  std::uint64_t words[kPayloadWords - kCallWords];
  for (std::size_t i = 0; i * sizeof *words < bytes; ++i)
    words[i] = group.team().word(member, static_cast<int>(kCallWords + i));
  if (bytes != 0) std::memcpy(data, words, bytes);
}

}  // namespace memspan::inline pgas
