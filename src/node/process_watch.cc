// SPDX-License-Identifier: Apache-2.0
#include "node/process_watch.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "core/environment.h"
#include "core/lifetime.h"

namespace memspan::inline node {
bool has_replaced_program(const NodeSegment& segment, pid_t process) {
  struct stat info {};
  if (fstat(segment.descriptor(), &info) != 0) return false;
  // Also checks the name, because other file systems count their inodes by themselves.
  const std::string inode = std::to_string(info.st_ino);
  errno = 0;
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  // Access is denied: it now runs a program of another user.
  if (!maps.is_open()) return errno == EACCES || errno == EPERM;
  bool has_lines = false;  // a process that is ending has no memory
  // A line is "ADDRESSES RIGHTS OFFSET DEVICE INODE PATH".
  for (std::string line; std::getline(maps, line); has_lines = true) {
    if (line.find("memspan-node") == std::string::npos) continue;
    if (const auto fields = split(line, ' '); fields.size() > 4 && fields[4] == inode) return false;
  }
  return has_lines;
}

bool mark_replaced(const NodeSegment& segment, int rank) {
  const PeerSlot& peer = segment.peer(rank);
  if (peer.state.load(std::memory_order_acquire) != PeerState::kJoined) return false;
  return has_replaced_program(segment, peer.pid.load(std::memory_order_relaxed)) &&
         segment.mark_lost(rank, kReplacedProgram);
}

void follow_exit_request(const NodeSegment& segment) {
  if (segment.header().exit_requested.load(std::memory_order_acquire) != 2) return;
  flush_and_exit(segment.header().exit_code.load(std::memory_order_relaxed));
}

// A connection carries nothing, so only its end is an event.
Status ProcessWatch::watch(Sign sign, int descriptor) {
  if (descriptor < 0) return Status::ok();
  MutexLock lock(mutex_);
  MEMSPAN_PASS_ASSIGN(tokens_[static_cast<std::size_t>(sign)],
                      loop_->watch(descriptor, sign == Sign::kGone ? EPOLLIN : 0u,
                                   [this, sign](std::uint32_t) { tell(sign); }));
  return Status::ok();
}

ProcessWatch::~ProcessWatch() {
  for (const Sign sign : {Sign::kGone, Sign::kConnectionClosed}) loop_->cancel(token(sign));
}

// The descriptor stays ready, so the watch ends here. The call may end this object.
void ProcessWatch::tell(Sign sign) {
  loop_->cancel(token(sign));
  const Told told = told_;
  told(sign);
}

Result<std::unique_ptr<ProcessWatch>> ProcessWatch::start(int own_end, int connection, Told told) {
  MEMSPAN_PASS_ASSIGN(auto loop, EventLoop::process_singleton());
  std::unique_ptr<ProcessWatch> made(new ProcessWatch(std::move(loop), std::move(told)));
  MEMSPAN_TRY(made->watch(Sign::kGone, own_end), "watching a process");
  MEMSPAN_TRY(made->watch(Sign::kConnectionClosed, connection), "watching a process");
  return made;
}

Result<std::unique_ptr<PeerWatch>> PeerWatch::start(const NodeSegment& segment,
                                                    std::vector<Watched> watched) {
  std::unique_ptr<PeerWatch> made(new PeerWatch(segment));
  for (Watched& peer : watched) {
    const int rank = peer.rank;
    MEMSPAN_PASS_ASSIGN(auto watch,
                        ProcessWatch::start(peer.own_end.get(), peer.connection.get(),
                                            [raw = made.get(), rank](ProcessWatch::Sign sign) {
                                              raw->told(rank, sign);
                                            }));
    made->entries_.push_back({std::move(peer), std::move(watch)});
  }
  return made;
}

void PeerWatch::told(int rank, ProcessWatch::Sign sign) {
  if (mark_replaced(segment_, rank)) return pass_on(rank, kReplacedProgram);
  if (sign == ProcessWatch::Sign::kConnectionClosed) return;
  follow_exit_request(segment_);
  report(rank, kUnseenEnd);
}

void PeerWatch::pass_on(int rank, int how) {
  std::shared_ptr<const Noted> noted;
  {
    MutexLock lock(mutex_);
    noted = noted_;
  }
  if (noted != nullptr && *noted) (*noted)(rank, how);
}

}  // namespace memspan::inline node
