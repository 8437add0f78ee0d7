// SPDX-License-Identifier: Apache-2.0
// Runs kernels on the host: threads call a function once for each block of a grid.
//
// A thread takes one block after another. A block that waits keeps its thread. Before it waits, it
// finds another thread for the blocks that have not begun. So any number of blocks may wait for
// each other.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"

namespace memspan::inline device {

class Grid;

// Threads that run blocks, kept for the next grid. Thread-safe. The destructor waits for them.
class BlockThreads : NotCopyable {
 public:
  static constexpr unsigned kMostBlocks = 65536;

  ~BlockThreads();

  // Calls kernel(block) for 0 to blocks - 1, on this thread and others, as many as there are cores.
  // Returns when all have ended, with the first failure of a meet_grid()'s `last`.
  Status run(unsigned blocks, const std::function<void(unsigned block)>& kernel);

 private:
  friend class Grid;
  // Gives the grid one more thread. Does nothing if `most_threads` exist and none of them is idle.
  // kSystem if a thread cannot be started.
  Status hire(const std::shared_ptr<Grid>& grid, std::size_t most_threads) MEMSPAN_EXCLUDES(mutex_);
  // After it returns, no further thread begins with the grid.
  void dismiss(const Grid& grid) MEMSPAN_EXCLUDES(mutex_);
  void work() MEMSPAN_EXCLUDES(mutex_);

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::shared_ptr<Grid>> wanted_ MEMSPAN_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ MEMSPAN_GUARDED_BY(mutex_);
  std::size_t idle_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
};

// The block that this thread runs, and the number of blocks; 0 and 1 if it runs none.
unsigned current_block();
unsigned current_blocks();

// Call before this thread's block waits for something outside its own grid.
Status let_other_blocks_run();

// A barrier for all blocks of this thread's grid. The last to arrive calls `last`; then all
// continue. The last one returns its Status, the others the first failure of any `last`.
// kInvalidArgument if a block has ended without it. A thread that runs no block only calls `last`.
Status meet_grid(const std::function<Status()>& last);

}  // namespace memspan::inline device
