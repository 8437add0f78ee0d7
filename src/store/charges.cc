// SPDX-License-Identifier: Apache-2.0
#include "store/charges.h"

#include <fmt/format.h>

#include "core/check.h"

namespace memspan {

std::optional<std::string> StoreCharges::over(SessionId session, std::size_t bytes) const {
  const auto found = by_session_.find(session);
  const std::size_t held = found == by_session_.end() ? 0 : found->second;
  if (held + bytes > of_one_)
    return fmt::format(
        "the store would need {} bytes more to remember it, and has {} of at most {} for what this "
        "member waits for, watches and brings",
        bytes, held, of_one_);
  if (all_ + bytes > of_all_)
    return fmt::format(
        "the store would need {} bytes more to remember it, and has {} of at most {} for what all "
        "members wait for, watch and bring",
        bytes, all_, of_all_);
  return std::nullopt;
}

void StoreCharges::add(SessionId session, std::size_t bytes) {
  by_session_[session] += bytes;
  all_ += bytes;
}

void StoreCharges::remove(SessionId session, std::size_t bytes) {
  const auto found = by_session_.find(session);
  MEMSPAN_CHECK(found != by_session_.end() && found->second >= bytes);
  all_ -= bytes;
  found->second -= bytes;
  if (found->second == 0) by_session_.erase(found);
}

}  // namespace memspan
