// SPDX-License-Identifier: Apache-2.0
#include "device/host/grid.h"

#include <fmt/format.h>
#include <sched.h>

#include "core/cpu.h"
#include "core/thread.h"
#include "device/stream.h"

namespace memspan::inline device {
namespace {

// A waiting block first polls, then yields its core, then sleeps.
constexpr int kLooks = 200;
constexpr int kYields = 2000;
constexpr auto kNap = std::chrono::milliseconds(20);

struct Here {
  Grid* grid = nullptr;
  unsigned block = 0;
};
thread_local Here here;

}  // namespace

// One launch. Owners: run() and the threads that work on it or are asked to.
class Grid : public std::enable_shared_from_this<Grid> {
 public:
  Grid(BlockThreads& threads, unsigned blocks, const std::function<void(unsigned)>& kernel)
      : threads_(threads), blocks_(blocks), kernel_(kernel) {}

  unsigned blocks() const { return blocks_; }

  // Takes blocks until all have begun.
  void take_blocks() {
    const Here before = here;
    const Stream* const stream_before = set_current_stream(stream_);
    // A late thread must not touch the kernel: the launch may be over.
    for (unsigned block = begun_.fetch_add(1, std::memory_order_relaxed); block < blocks_;
         block = begun_.fetch_add(1, std::memory_order_relaxed)) {
      here = {this, block};
      kernel_(block);
      if (ended_.fetch_add(1, std::memory_order_acq_rel) + 1 == blocks_) wake();
    }
    here = before;
    set_current_stream(stream_before);
  }

  void wait_for_end() {
    wait_until([this] { return ended_.load(std::memory_order_acquire) == blocks_; });
  }

  Status hire_if_needed() {
    if (begun_.load(std::memory_order_relaxed) >= blocks_) return Status::ok();
    return threads_.hire(shared_from_this(), std::numeric_limits<std::size_t>::max());
  }

  Status meet(const std::function<Status()>& last) {
    const unsigned phase = phase_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == blocks_) {
      Status done = last();
      if (!done.is_ok()) {
        MutexLock lock(mutex_);
        if (failure_.is_ok()) failure_ = done;
      }
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      wake();
      return done;
    }
    MEMSPAN_PASS(hire_if_needed());
    unsigned ended = 0;
    wait_until([&] {
      if (phase_.load(std::memory_order_acquire) != phase) return true;
      ended = ended_.load(std::memory_order_acquire);
      return ended != 0;
    });
    if (phase_.load(std::memory_order_acquire) != phase) return failure();
    return {
        Code::kInvalidArgument,
        fmt::format("{} of the grid's {} blocks have ended without this barrier", ended, blocks_)};
  }

  Status failure() {
    MutexLock lock(mutex_);
    return failure_;
  }

 private:
  template <typename Ready>
  void wait_until(Ready ready) {
    for (int look = 0; look < kLooks; ++look) {
      if (ready()) return;
      cpu_pause();
    }
    for (int i = 0; i < kYields; ++i) {
      if (ready()) return;
      ::sched_yield();
    }
    MutexLock lock(mutex_);
    sleepers_.fetch_add(1);
    while (!ready()) changed_.wait_until(mutex_, Deadline::after(kNap));
    sleepers_.fetch_sub(1);
  }
  void wake() {
    if (sleepers_.load() == 0) return;
    MutexLock lock(mutex_);
    changed_.notify_all();
  }

  BlockThreads& threads_;
  const unsigned blocks_;
  const std::function<void(unsigned)>& kernel_;
  const Stream* const stream_ = current_stream();  // the stream of the launch
  std::atomic<unsigned> begun_{0};
  std::atomic<unsigned> ended_{0};
  std::atomic<unsigned> arrived_{0};
  std::atomic<unsigned> phase_{0};
  std::atomic<int> sleepers_{0};
  Mutex mutex_;
  ConditionVariable changed_;
  Status failure_ MEMSPAN_GUARDED_BY(mutex_);
};

BlockThreads::~BlockThreads() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    threads.swap(threads_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

Status BlockThreads::run(unsigned blocks, const std::function<void(unsigned block)>& kernel) {
  if (blocks == 0 || blocks > kMostBlocks)
    return {Code::kInvalidArgument,
            fmt::format("a grid of {} blocks; allowed are 1 to {}", blocks, kMostBlocks)};
  const auto grid = std::make_shared<Grid>(*this, blocks, kernel);
  const unsigned helpers = blocks == 1 ? 0 : static_cast<unsigned>(usable_cores()) - 1;
  for (unsigned i = 0; i < std::min(blocks - 1, helpers); ++i)
    if (!hire(grid, helpers).is_ok()) break;  // fewer threads run the blocks
  grid->take_blocks();
  grid->wait_for_end();
  dismiss(*grid);
  return grid->failure();
}

void BlockThreads::dismiss(const Grid& grid) {
  MutexLock lock(mutex_);
  std::erase_if(wanted_, [&](const auto& one) { return one.get() == &grid; });
}

Status BlockThreads::hire(const std::shared_ptr<Grid>& grid, std::size_t most_threads) {
  {
    MutexLock lock(mutex_);
    if (idle_ <= wanted_.size() && threads_.size() >= most_threads) return Status::ok();
    wanted_.push_back(grid);
    if (idle_ < wanted_.size()) {
      auto thread = start_thread("a kernel's blocks", [this] { work(); });
      if (!thread.is_ok()) {
        wanted_.pop_back();
        return thread.status();
      }
      threads_.push_back(std::move(thread).value());
      return Status::ok();
    }
  }
  changed_.notify_one();
  return Status::ok();
}

void BlockThreads::work() {
  MutexLock lock(mutex_);
  while (true) {
    while (wanted_.empty()) {
      if (is_ending_) return;
      ++idle_;
      changed_.wait_until(mutex_, Deadline::never());
      --idle_;
    }
    const std::shared_ptr<Grid> grid = std::move(wanted_.front());
    wanted_.pop_front();
    mutex_.unlock();
    grid->take_blocks();
    mutex_.lock();
  }
}

unsigned current_block() {
  return here.block;
}

unsigned current_blocks() {
  return here.grid == nullptr ? 1 : here.grid->blocks();
}

Status let_other_blocks_run() {
  return here.grid == nullptr ? Status::ok() : here.grid->hire_if_needed();
}

Status meet_grid(const std::function<Status()>& last) {
  return here.grid == nullptr ? last() : here.grid->meet(last);
}

}  // namespace memspan::inline device
