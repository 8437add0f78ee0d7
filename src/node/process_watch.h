// SPDX-License-Identifier: Apache-2.0
// Who notices that a process ended.
//
// ProcessWatch watches one process of this host through the event loop of this process: its pidfd
// says that it is gone, never that it is slow (one that is stopped or traced is not dead); a
// connection to it is closed also when it calls exec().
//
// PeerWatch is the failure detector of a job: it notes deaths in the node segment, which wakes
// whoever waits. It learns of them from its ProcessWatches and from whoever calls report(): a
// launcher, the loss of a connection to another node, the end of a lease in a store.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/event_loop.h"
#include "core/fd.h"
#include "core/mutex.h"
#include "core/status.h"
#include "node/segment.h"

namespace memspan {

// Move-only. No call runs or begins after it ended, unless it ends in that call.
class ProcessWatch {
 public:
  enum class Sign { kGone, kConnectionClosed };
  // Each sign is told at most once, on the loop's thread; the call must not wait.
  using Told = std::function<void(Sign)>;

  ProcessWatch() = default;  // watches nothing
  // Both descriptors are borrowed until this ends; one of -1 tells nothing.
  static Result<ProcessWatch> start(int pidfd, int connection, Told told);
  ProcessWatch(ProcessWatch&&) noexcept = default;
  ProcessWatch& operator=(ProcessWatch&&) noexcept = default;

 private:
  class Watched;
  explicit ProcessWatch(std::unique_ptr<Watched> watched);
  struct End {
    void operator()(Watched* watched) const;
  };
  std::unique_ptr<Watched, End> watched_;
};

// Ends this process with the code of shmem_global_exit when some process asked for that, as if this
// one had been asked itself; else it does nothing.
void follow_exit_request(const NodeSegment& segment);

// Thread-safe.
class PeerWatch {
 public:
  // A peer of this node that this process watches itself. Where no launcher does, the node leader
  // watches all others, and they watch it.
  struct Watched {
    int rank;
    Fd pidfd;
    Fd connection;
  };
  // `segment` must outlive it.
  static Result<std::unique_ptr<PeerWatch>> start(const NodeSegment& segment,
                                                  std::vector<Watched> watched);
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  // Notes that a peer, of whatever node, died; `how` as PeerSlot::wait_status. True when nobody had
  // noted it on this node.
  bool report(int rank, int how) MEMSPAN_EXCLUDES(mutex_);
  // Calls `noted` for every death from now on that this object is the first of the node to note, on
  // the thread that noted it.
  using Noted = std::function<void(int rank, int how)>;
  void set_listener(Noted noted) MEMSPAN_EXCLUDES(mutex_);

  // In a child of fork(), which must not keep a connection open that its parent's exec() closes.
  // What else it has of this object stays as it is.
  void forget_in_child();

 private:
  // Member order is destruction order, last first: no descriptor is closed before its watch ends.
  struct Entry {
    Watched watched;
    ProcessWatch watch;
  };
  explicit PeerWatch(const NodeSegment& segment) : segment_(segment) {}
  void told(int rank, ProcessWatch::Sign sign);
  void pass_on(int rank, int how) MEMSPAN_EXCLUDES(mutex_);

  const NodeSegment& segment_;
  Mutex mutex_;
  // Owners: this and a call that runs.
  std::shared_ptr<const Noted> noted_ MEMSPAN_GUARDED_BY(mutex_);
  std::vector<Entry> entries_;  // ends first
};

}  // namespace memspan
