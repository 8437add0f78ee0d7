// SPDX-License-Identifier: Apache-2.0
#include "store/charges.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/status.h"

namespace memspan::inline store {

Status StoreCharges::check(SessionId session, std::size_t more, FormerCharge former) const {
  const bool is_own = former.session == session;
  if (is_own && more <= former.amount) return Status::ok();
  const auto found = by_session_.find(session);
  const std::size_t held =
      found == by_session_.end() ? 0 : found->second - (is_own ? former.amount : 0);
  const std::size_t all = all_ - former.amount;
  const auto left_of = [&](std::size_t limit) { return limit - std::min(limit, all); };
  const std::size_t share = std::max(share_.assured, left_of(share_.all - share_.all / 4));
  const std::size_t most = std::min({share, share_.one, held + left_of(share_.all)});
  if (held + more <= most) return Status::ok();
  return {Code::kOutOfMemory,
          fmt::format("the store has no room for it ({}): this member has {}, wants {} more and "
                      "may have at most {} now; all members have {} of at most {}",
                      share_.what, held, more, most, all, share_.all)};
}

void StoreCharges::add(SessionId session, std::size_t amount) {
  by_session_[session] += amount;
  all_ += amount;
}

void StoreCharges::remove(SessionId session, std::size_t amount) {
  const auto found = by_session_.find(session);
  MEMSPAN_CHECK(found != by_session_.end() && found->second >= amount);
  all_ -= amount;
  found->second -= amount;
  if (found->second == 0) by_session_.erase(found);
}

}  // namespace memspan::inline store
