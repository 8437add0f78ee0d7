// SPDX-License-Identifier: Apache-2.0
#include "world/static_sharing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "core/log.h"
#include "memory/address_plan.h"
#include "world/launch.h"

namespace memspan {
namespace {

// A launched program may start others before it joins, and those inherit its rank: the first has
// the place, until it is gone.
bool claim_place(PeerSlot& self) {
  const pid_t me = getpid();
  pid_t owner = self.data_owner.load(std::memory_order_acquire);
  if (owner == me) return true;
  if (owner != 0 && (kill(owner, 0) == 0 || errno != ESRCH)) return false;
  return self.data_owner.compare_exchange_strong(owner, me, std::memory_order_acq_rel);
}

Status move(const StaticSegment& data, const NodeSegment& segment, const Pages& heap, int rank,
            int index) {
  if (data.bytes > kStaticSegmentBytes)
    return {Code::kOutOfMemory, fmt::format("the program's variables have {} bytes, {} fit",
                                            data.bytes, kStaticSegmentBytes)};
  if (!claim_place(segment.peer(rank)))
    return {Code::kUnavailable, fmt::format("process {} has the place of this rank",
                                            segment.peer(rank).data_owner.load())};
  MEMSPAN_PASS(move_static_segment(data, heap, static_segment_offset(segment, index)));
  // Pairs with the acquire in World::connect_static_segments(); the barrier in between is enough.
  segment.peer(rank).program.store(data.identity, std::memory_order_release);
  return Status::ok();
}

// Descriptors of the launcher are left as they are.
Result<Fd> copy_of(int descriptor) {
  Fd own(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!own.is_valid()) return Status::from_errno("duplicating a descriptor of the launcher");
  return own;
}

Status share_with_launch(const Launch& launch) {
  MEMSPAN_TRY_ASSIGN(Fd segment_descriptor, copy_of(launch.segment), "sharing variables");
  MEMSPAN_TRY_ASSIGN(const NodeSegment segment, NodeSegment::attach(std::move(segment_descriptor)),
                     "sharing");
  // The launcher reads it when the job is over, so no other line orders it.
  segment.header().library_seen.store(1, std::memory_order_relaxed);
  const StaticSegment data = find_static_segment();
  if (data.is_empty()) return Status::ok();
  MEMSPAN_TRY_ASSIGN(Fd heap_descriptor, copy_of(launch.heap), "sharing variables");
  MEMSPAN_TRY_ASSIGN(const Pages heap, Pages::adopt(std::move(heap_descriptor)), "sharing");
  if (launch.rank >= segment.peers() || segment.peers() == 1) return Status::ok();
  return move(data, segment, heap, launch.rank, launch.nodes().index_of(launch.rank));
}

}  // namespace

std::size_t static_segment_offset(const NodeSegment& segment, int index) {
  return (static_cast<std::size_t>(index) + 1) * segment.header().heap_stride - kStaticSegmentBytes;
}

void share_static_segment_at_start() {
  auto launch = Launch::from_environment();
  // A failure here occurs again in share_static_segment(), which logs it.
  if (launch.is_ok() && *launch) static_cast<void>(share_with_launch(**launch).is_ok());
}

StaticSegment share_static_segment(const NodeSegment& segment, const Pages& heap, int rank,
                                   int index) {
  const StaticSegment data = find_static_segment();
  if (data.is_empty() || segment.peers() == 1) return data;
  const Status status = move(data, segment, heap, rank, index);
  if (status.is_ok()) return data;
  log_line(LogLevel::kWarn,
           fmt::format("global and static variables are not symmetric: {}", status.message()));
  return {};
}

}  // namespace memspan
