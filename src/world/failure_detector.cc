// SPDX-License-Identifier: Apache-2.0
#include "world/failure_detector.h"

#include <poll.h>
#include <unistd.h>

#include <cstdio>

#include "world/process_image.h"

namespace memspan {
namespace {

// A peer asked the job to end and is gone: so do we, as if we had been asked ourselves.
void follow_exit_request(const Board& board) {
  if (board.header().exit_requested.load(std::memory_order_acquire) != 2) return;
  std::fflush(nullptr);
  _exit(board.header().exit_code.load(std::memory_order_relaxed));
}

}  // namespace

Result<std::unique_ptr<FailureDetector>> FailureDetector::start(const Board& board,
                                                                std::vector<Watched> watched) {
  auto wake = WakeEvent::create();
  if (!wake.is_ok()) return wake.status();
  return std::unique_ptr<FailureDetector>(
      new FailureDetector(board, std::move(watched), std::move(wake).value()));
}

FailureDetector::FailureDetector(const Board& board, std::vector<Watched> watched, WakeEvent wake)
    : board_(board),
      watched_(std::move(watched)),
      wake_(std::move(wake)),
      thread_([this] { run(); }) {}

FailureDetector::~FailureDetector() {
  wake_.ring();
  thread_.join();
}

void FailureDetector::forget_in_child() {
  for (Watched& watched : watched_) watched.connection.reset();
}

void FailureDetector::run() {
  // After the wake-up each one's pidfd, then each one's connection, where nothing but its end
  // comes.
  std::vector<pollfd> polled{{wake_.descriptor(), POLLIN, 0}};
  for (const Watched& watched : watched_) polled.push_back({watched.pidfd.get(), POLLIN, 0});
  for (const Watched& watched : watched_) polled.push_back({watched.connection.get(), 0, 0});
  while (true) {
    if (poll(polled.data(), polled.size(), -1) < 0) continue;  // EINTR
    if (polled[0].revents != 0) return;
    for (std::size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      polled[i].fd = -1;  // poll ignores it from now on
      const int rank = watched_[(i - 1) % watched_.size()].rank;
      if (i > watched_.size()) {
        mark_replaced(board_, rank);
        continue;
      }
      follow_exit_request(board_);
      board_.mark_lost(rank, kUnseenEnd);
    }
  }
}

}  // namespace memspan
