// SPDX-License-Identifier: Apache-2.0
// Detection of the end of processes.
//
// ProcessWatch watches one process of this host on the event loop of this process. The descriptor
// of open_own_end() shows that it is gone, never that it is slow: a stopped or traced process is
// not dead. A connection to it, like the pipe that replaces a pidfd, also closes when it calls
// exec().
//
// PeerWatch is the failure detector of a job: it marks deaths in the node segment, which wakes
// waiting threads. It learns of them from each ProcessWatch and from callers of report().
#pragma once

#include <sys/types.h>

#include <array>

#include "core/mutex.h"
#include "net/event_loop.h"
#include "node/segment.h"

namespace memspan::inline node {

// Whether a process still runs the program that joined a job. exec() keeps the number of the
// process, its pidfd and its parent, and takes away everything that it had mapped.
//
// True if `process` lives and does not map `segment` (any more), by /proc/PID/maps. False if it is
// ending, which its parent and its pidfd report. Takes milliseconds if much is mapped.
bool has_replaced_program(const NodeSegment& segment, pid_t process);

// Marks `rank` as lost if it is in the job and its process replaced its program. True if this call
// marked it. Call it after a connection of `rank` was closed.
bool mark_replaced(const NodeSegment& segment, int rank);

// No call runs or begins after its destruction, unless that call destroys it.
class ProcessWatch : NotCopyable {
 public:
  enum class Sign { kGone, kConnectionClosed };
  // Called at most once for each sign, on the loop's thread; must not wait.
  using Told = std::function<void(Sign)>;

  // Borrows both descriptors until it is destroyed; -1 is not watched.
  static Result<std::unique_ptr<ProcessWatch>> start(int own_end, int connection, Told told);
  ~ProcessWatch();

 private:
  ProcessWatch(std::shared_ptr<EventLoop> loop, Told told)
      : loop_(std::move(loop)), told_(std::move(told)) {}
  Status watch(Sign sign, int descriptor) MEMSPAN_EXCLUDES(mutex_);
  EventLoop::Token token(Sign sign) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return tokens_[static_cast<std::size_t>(sign)];
  }
  void tell(Sign sign);

  const std::shared_ptr<EventLoop> loop_;  // owners: all its users
  const Told told_;
  Mutex mutex_;
  std::array<EventLoop::Token, 2> tokens_ MEMSPAN_GUARDED_BY(mutex_) = {};
};

// If some process called shmem_global_exit, ends this process with its code, as if it had called
// that itself. Otherwise does nothing.
void follow_exit_request(const NodeSegment& segment);

// Thread-safe.
class PeerWatch : NotCopyable {
 public:
  // A peer of this node that this process itself watches. Without a launcher the node leader
  // watches all others, and they watch it.
  struct Watched {
    int rank;
    Fd own_end;
    Fd connection;
  };
  // `segment` must outlive it.
  static Result<std::unique_ptr<PeerWatch>> start(const NodeSegment& segment,
                                                  std::vector<Watched> watched);

  // Marks a peer of any node as dead; `how` is as in PeerSlot::wait_status. True if this call was
  // the first on this node.
  bool report(int rank, int how) MEMSPAN_EXCLUDES(mutex_) {
    if (!segment_.mark_lost(rank, how)) return false;
    pass_on(rank, how);
    return true;
  }
  // From now on calls `noted` for every death that this object is the first of the node to mark, on
  // the thread that marked it.
  using Noted = std::function<void(int rank, int how)>;
  void set_listener(Noted noted) MEMSPAN_EXCLUDES(mutex_) {
    auto listener = std::make_shared<const Noted>(std::move(noted));
    MutexLock lock(mutex_);
    noted_.swap(listener);
  }

  // Call it in a child of fork(), which must not hold a connection open that its parent's exec()
  // closes. Leaves the rest of this object as it is.
  void forget_in_child() {
    for (Entry& entry : entries_) entry.watched.connection.reset();
  }

 private:
  // Members are destroyed last first: no descriptor is closed before its watch ends.
  struct Entry {
    Watched watched;
    std::unique_ptr<ProcessWatch> watch;
  };
  explicit PeerWatch(const NodeSegment& segment) : segment_(segment) {}
  void told(int rank, ProcessWatch::Sign sign);
  void pass_on(int rank, int how) MEMSPAN_EXCLUDES(mutex_);

  const NodeSegment& segment_;
  Mutex mutex_;
  // Owners: this object and a running call.
  std::shared_ptr<const Noted> noted_ MEMSPAN_GUARDED_BY(mutex_);
  std::vector<Entry> entries_;  // destroyed first
};

}  // namespace memspan::inline node
