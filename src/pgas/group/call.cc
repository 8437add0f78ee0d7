// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/call.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

namespace memspan::pgas {
namespace {

constexpr std::array<const char*, 10> kNames{
    "barrier",    "broadcast", "all_reduce", "reduce",     "reduce_scatter",
    "all_gather", "gather",    "scatter",    "all_to_all", "map"};

// | call | type + 1 | op + 1 | 8 bits of nothing | root + 1 |, and the bytes.
struct Words {
  std::uint64_t terms;
  std::uint64_t bytes;

  static Words of(const CallTerms& call) {
    const auto field = [](int number) { return static_cast<std::uint64_t>(number) + 1; };
    return {static_cast<std::uint64_t>(call.call) | field(call.type) << 8 | field(call.op) << 16 |
                field(call.root) << 32,
            call.bytes};
  }
  bool operator==(const Words& other) const { return terms == other.terms && bytes == other.bytes; }
  std::string to_string() const {
    const std::size_t call = terms & 0xff;
    std::string text =
        fmt::format("{} of {} bytes", call < kNames.size() ? kNames[call] : "?", bytes);
    if (const std::uint64_t type = terms >> 8 & 0xff; type != 0)
      text += fmt::format(", type {}, operation {}", type - 1, (terms >> 16 & 0xff) - 1);
    if (const std::uint64_t root = terms >> 32; root != 0)
      text += fmt::format(", root {}", root - 1);
    return text;
  }
};

Words words_of(const Team& team, int member) {
  return {team.word(member, 0), team.word(member, 1)};
}

}  // namespace

const char* CallTerms::what() const {
  return kNames[static_cast<std::size_t>(call)];
}

// All compare all with the first, so that what one finds all find.
Status meet_for(ProcessGroup& group, const CallTerms& terms, const void* data,
                std::size_t data_bytes) {
  Team& team = group.team();
  const Words mine = Words::of(terms);
  std::uint64_t words[kMeetingWords] = {mine.terms, mine.bytes};
  if (data_bytes != 0) std::memcpy(words + kCallWords, data, data_bytes);
  const std::size_t used = kCallWords + (data_bytes + sizeof *words - 1) / sizeof *words;
  MEMSPAN_PASS(team.meet(terms.what(), words, static_cast<int>(used)));
  const Words first = words_of(team, 0);
  for (int member = 1; member < team.size(); ++member)
    if (const Words other = words_of(team, member); !(other == first))
      return {Code::kInvalidArgument,
              fmt::format("the members call different things: member 0 {}, member {} {}",
                          first.to_string(), member, other.to_string())};
  return Status::ok();
}

void read_call_data(const ProcessGroup& group, int member, void* data, std::size_t bytes) {
  std::uint64_t words[kMeetingWords - kCallWords];
  for (std::size_t i = 0; i * sizeof *words < bytes; ++i)
    words[i] = group.team().word(member, static_cast<int>(kCallWords + i));
  std::memcpy(data, words, bytes);
}

}  // namespace memspan::pgas
