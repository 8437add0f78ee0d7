// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/contributions.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/log.h"
#include "store/key_value_store.h"
#include "store/notice.h"

namespace memspan::inline store {

MEMSPAN_REMEDY(
    kRanksMissing, "ranks-missing",
    "The named ranks did not come before the time limit of the start or the call.",
    "Read their output: they failed or never started. MEMSPAN_INIT_TIMEOUT is the limit.");

std::size_t most_contributed(int size) {
  // A listing also has each member's key and name.
  constexpr std::size_t kMostOfRecord = 256;
  const std::size_t share = kMaxValueBytes / static_cast<std::size_t>(size);
  return share - std::min(kMostOfRecord, share / 2);
}

Status Contribution::check(int rank, int size) const {
  if (length <= most_contributed(size)) return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("rank {} brought {} bytes, at most {} of each of {} are allowed", rank,
                      length, most_contributed(size), size)};
}

Status member_is_gone(int rank, std::string_view member, bool has_left) {
  return {Code::kPeerLost, fmt::format("rank {} ({}) is gone: {}", rank, member,
                                       has_left ? "it left" : "its lease ended")};
}

std::string describe_missing(int size, const std::vector<int>& missing) {
  constexpr std::size_t kNamed = 16;
  const std::size_t named = std::min(kNamed, missing.size());
  std::string text = fmt::format("{} of {} members did not come: rank {}", missing.size(), size,
                                 fmt::join(missing.begin(), missing.begin() + named, ", "));
  if (missing.size() > named) text += fmt::format(" and {} more", missing.size() - named);
  return text + kRanksMissing;
}

void WaitNotice::look() {
  if (is_logged || Clock::now() - begin < kSilentWait) return;
  is_logged = true;
  log_line_limited(LogLevel::kWarn,
                   fmt::format("rank {} of {} waits at the store for others that have not come to "
                               "\"{}\" ({:.0f} s so far, {})",
                               rank, size, where, to_seconds(kSilentWait), until(deadline)));
}

}  // namespace memspan::inline store
