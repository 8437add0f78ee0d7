// SPDX-License-Identifier: Apache-2.0
#include "launcher/labelled_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace memspan::launcher {
namespace {

// A line longer than this is passed on in parts, so that a program that never ends a line cannot
// fill the launcher's memory.
constexpr std::size_t kLongestLine = std::size_t{1} << 20;
constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr std::size_t kMostReady = std::size_t{256} << 10;

// False when nobody reads `target` any more. The target may be in non-blocking mode: it is shared
// with whoever started us.
bool write_all(int target, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    ssize_t count = write(target, bytes.data() + done, bytes.size() - done);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd room{target, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<LabelledOutput> LabelledOutput::make(int rank, int target, Fd& writer) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno("making a pipe for --label");
  Fd reader(ends[0]);
  writer.reset(ends[1]);
  // Only our end: the process must see an ordinary blocking pipe.
  if (fcntl(reader.get(), F_SETFL, O_NONBLOCK) != 0)
    return Status::from_errno("making a pipe for --label");
  return LabelledOutput(rank, target, std::move(reader));
}

LabelledOutput::LabelledOutput(int rank, int target, Fd pipe)
    : target_(target), pipe_(std::move(pipe)), label_(fmt::format("[{}] ", rank)) {}

void LabelledOutput::drain() {
  char buffer[kReadBytes];
  while (is_open()) {
    ssize_t count = read(pipe_.get(), buffer, sizeof buffer);
    if (count > 0) {
      take(buffer, static_cast<std::size_t>(count));
    } else if (count == 0) {
      if (!line_.empty()) end_line();
      flush();
      pipe_.reset();
    } else if (errno != EINTR) {
      break;
    }
  }
  flush();
}

void LabelledOutput::finish() {
  drain();
  if (!is_open()) return;  // then the last line is out
  if (!line_.empty()) end_line();
  flush();
  pipe_.reset();
}

void LabelledOutput::take(const char* bytes, std::size_t count) {
  while (count > 0) {
    const void* end = std::memchr(bytes, '\n', count);
    std::size_t part =
        end == nullptr ? count : static_cast<std::size_t>(static_cast<const char*>(end) - bytes);
    line_.append(bytes, part);
    if (end != nullptr || line_.size() >= kLongestLine) end_line();
    if (end != nullptr) ++part;
    bytes += part;
    count -= part;
  }
  if (ready_.size() >= kMostReady) flush();
}

void LabelledOutput::end_line() {
  ready_ += label_;
  ready_ += line_;
  ready_ += '\n';
  line_.clear();
}

void LabelledOutput::flush() {
  if (!ready_.empty() && !write_all(target_, ready_)) {
    pipe_.reset();
    line_.clear();
  }
  ready_.clear();
}

}  // namespace memspan::launcher
