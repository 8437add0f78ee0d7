// SPDX-License-Identifier: Apache-2.0
// Kernels on the host: a function that is called once for each block of a grid, on threads.
//
// A thread takes one block after another. A block that waits keeps its thread, and before it waits
// another thread is found for the blocks that have not begun; so blocks may wait for each other,
// however many there are.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"

namespace memspan {

class Grid;

// Threads that run blocks, kept for the next grid. Thread-safe. Its end waits for them.
class BlockThreads {
 public:
  static constexpr unsigned kMostBlocks = 65536;

  BlockThreads() = default;
  ~BlockThreads();
  BlockThreads(const BlockThreads&) = delete;
  BlockThreads& operator=(const BlockThreads&) = delete;

  // Calls kernel(block) for 0 to blocks - 1, on this thread and others, as many as there are cores.
  // Returns when all have ended, with the first failure of meet_grid() or of finding a thread.
  Status run(unsigned blocks, const std::function<void(unsigned block)>& kernel);

 private:
  friend class Grid;
  // One more thread for the grid: a helper only where fewer than `most_threads` are there or one is
  // idle. kSystem when there can be none.
  Status hire(const std::shared_ptr<Grid>& grid, std::size_t most_threads) MEMSPAN_EXCLUDES(mutex_);
  // No thread begins with it any more.
  void dismiss(const Grid& grid) MEMSPAN_EXCLUDES(mutex_);
  void work() MEMSPAN_EXCLUDES(mutex_);

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::shared_ptr<Grid>> wanted_ MEMSPAN_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ MEMSPAN_GUARDED_BY(mutex_);
  std::size_t idle_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
};

// Of the block that this thread runs; 0 of 1 when it runs none.
unsigned current_block();
unsigned current_blocks();

// Before this thread's block waits for something that is not of its own grid.
Status let_other_blocks_run();

// All blocks of this thread's grid meet: the last to come does `last`, then all go on, with its
// Status. kInvalidArgument when a block has ended without it. A thread that runs no block only does
// `last`.
Status meet_grid(const std::function<Status()>& last);

}  // namespace memspan
