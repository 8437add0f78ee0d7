// SPDX-License-Identifier: Apache-2.0
// Waits for members of a pool. Events of the watch wake them. The end of the store causes no event,
// so a wait asks the store now and then.
#include <fmt/ranges.h>

#include "core/interrupt.h"
#include "fabric/pool.h"

namespace memspan {
namespace {

// How late a wait notices the end of the store. Each look costs a round trip.
constexpr auto kStoreLook = std::chrono::milliseconds(200);

}  // namespace

Status Pool::await_members(std::uint32_t count, const Deadline& deadline) {
  return await_presence(0, options_.ranks, deadline, [&](Duration waited) MEMSPAN_REQUIRES(mutex_) {
    const std::vector<std::uint32_t> present = present_ranks();
    if (present.size() >= count) return Status::ok();
    return Status(Code::kTimeout,
                  fmt::format("{} of {} members are in the pool ({}) after {:.3f} s",
                              present.size(), count, fmt::join(present, ", "), to_seconds(waited)));
  });
}

Status Pool::await_member(std::uint32_t rank, const Deadline& deadline) {
  return await_presence(rank, rank + 1, deadline, [&](Duration waited) MEMSPAN_REQUIRES(mutex_) {
    const Peer::Stage stage = peers_[rank].stage;
    if (rank == options_.rank || stage == Peer::Stage::kMapped || stage == Peer::Stage::kRemote)
      return Status::ok();
    return Status(Code::kTimeout,
                  fmt::format("rank {} {} after {:.3f} s", rank,
                              !peers_[rank].next.empty() ? kIsHeld
                              : stage == Peer::Stage::kFetching
                                  ? "is in the pool, but did not hand over its memory"
                                  : "is not in the pool",
                              to_seconds(waited)));
  });
}

// Fails if one of the ranks in [first, end) leaves.
template <typename Look>
Status Pool::await_presence(std::uint32_t first, std::uint32_t end, const Deadline& deadline,
                            Look look) {
  const auto began = Clock::now();
  MutexLock lock(mutex_);
  // An absent member may have one more event: its join.
  std::vector<std::uint64_t> allowed(options_.ranks);
  for (std::uint32_t rank = first; rank < end; ++rank)
    allowed[rank] = peers_[rank].events + (peers_[rank].stage == Peer::Stage::kAbsent ? 1 : 0);
  while (true) {
    if (join_ == 0 || ends_waits_)
      return {Code::kUnavailable, "this process has not joined the pool, or left it"};
    for (std::uint32_t rank = first; rank < end; ++rank) {
      if (peers_[rank].events > allowed[rank])
        return {Code::kPeerLost,
                fmt::format("rank {} left the pool, or ended, after {:.3f} s of this call", rank,
                            to_seconds(Clock::now() - began))};
      if (peers_[rank].stage == Peer::Stage::kFailed) return peers_[rank].why;
    }
    Status status = look(Clock::now() - began);
    if (status.is_ok() || deadline.has_passed()) return status;
    if (wait_interruptibly(changed_, mutex_, deadline.within(kStoreLook))) continue;
    status = end_of_wait("the time is over");
    if (status.code() != Code::kTimeout) return status;
    if (!deadline.has_passed()) MEMSPAN_PASS(ask_store(deadline));
  }
}

}  // namespace memspan
