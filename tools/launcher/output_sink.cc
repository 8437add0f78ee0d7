// SPDX-License-Identifier: Apache-2.0
#include "launcher/output_sink.h"

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace memspan::launcher {

OutputSink::OutputSink(int target) : target_(target) {
  struct stat info {};
  takes_all_ = fstat(target, &info) == 0 && S_ISREG(info.st_mode);
}

void OutputSink::append(std::string_view bytes) {
  if (error_ == 0) pending_.append(bytes);
}

// A pipe that can be written takes PIPE_BUF bytes at once. Whole lines, so that the output of
// others appears between lines.
std::size_t OutputSink::next_write() const {
  if (takes_all_ || pending() <= PIPE_BUF) return pending();
  const std::size_t line = pending_.rfind('\n', done_ + PIPE_BUF - 1);
  return line == std::string::npos || line < done_ ? PIPE_BUF : line + 1 - done_;
}

void OutputSink::flush() {
  while (pending() > 0) {
    pollfd room{target_, POLLOUT, 0};
    if (!takes_all_ && poll(&room, 1, 0) == 0) break;
    const ssize_t count = write(target_, pending_.data() + done_, next_write());
    if (count >= 0)
      done_ += static_cast<std::size_t>(count);
    else if (errno == EAGAIN)
      break;
    else if (errno != EINTR) {
      error_ = errno;
      done_ = pending_.size();
    }
  }
  if (pending() == 0 || done_ >= kMostPending) {
    pending_.erase(0, done_);
    done_ = 0;
  }
}

}  // namespace memspan::launcher
