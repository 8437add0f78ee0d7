// SPDX-License-Identifier: Apache-2.0
// Texts of all members of a team, by barriers.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/agreement.h"
#include "pgas/team.h"

namespace memspan::inline pgas {

inline constexpr std::size_t kMostTextBytes = 2048;

// An all-gather of short texts among the members, by the words that the barriers of `team` carry:
// for what is done once in a job. Longer texts are cut. `what` names the call in messages; both
// must outlive it. One thread at a time.
inline Exchange exchange_by_barriers(Team& team, const char* what) {
  return [&team, what](std::string mine) -> Result<std::vector<std::string>> {
    constexpr std::size_t kBytesOfBarrier = kPayloadWords * sizeof(std::uint64_t);
    mine.resize(std::min(mine.size(), kMostTextBytes));
    const std::uint64_t length = mine.size();
    MEMSPAN_PASS(team.barrier(what, &length, 1));
    std::vector<std::string> all;
    std::size_t longest = 0;
    for (int member = 0; member < team.size(); ++member) {
      all.emplace_back(std::min<std::uint64_t>(team.word(member, 0), kMostTextBytes), '\0');
      longest = std::max(longest, all.back().size());
    }
    for (std::size_t done = 0; done < longest; done += kBytesOfBarrier) {
      std::uint64_t words[kPayloadWords] = {};
      if (done < mine.size())
        std::memcpy(words, mine.data() + done, std::min(mine.size() - done, kBytesOfBarrier));
      MEMSPAN_PASS(team.barrier(what, words, kPayloadWords));
      for (int member = 0; member < team.size(); ++member) {
        std::string& text = all[member];
        for (int i = 0; i < kPayloadWords; ++i) words[i] = team.word(member, i);
        if (done < text.size())
          std::memcpy(text.data() + done, words, std::min(text.size() - done, kBytesOfBarrier));
      }
    }
    return all;
  };
}

}  // namespace memspan::inline pgas
