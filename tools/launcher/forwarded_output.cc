// SPDX-License-Identifier: Apache-2.0
#include "launcher/forwarded_output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace memspan::launcher {
namespace {

// A line longer than this is passed on in parts, so that a program that never ends a line cannot
// fill the launcher's memory.
constexpr std::size_t kLongestLine = std::size_t{1} << 20;
constexpr std::size_t kReadBytes = std::size_t{64} << 10;
// The most that a pipe can hold; finish() does not wait for a process that still writes.
constexpr std::size_t kLargestRemainder = std::size_t{1} << 20;

}  // namespace

ForwardedOutput::ForwardedOutput(std::string label, OutputSink& sink, Fd reader)
    : label_(std::move(label)), sink_(&sink), reader_(std::move(reader)) {}

void ForwardedOutput::drain() {
  pass_on(kReadBytes);
}

void ForwardedOutput::finish() {
  pass_on(kLargestRemainder);
}

void ForwardedOutput::pass_on(std::size_t most) {
  char buffer[kReadBytes];
  for (std::size_t done = 0; is_open() && done < most;) {
    const ssize_t count = read(reader_.get(), buffer, sizeof buffer);
    if (count > 0) {
      take({buffer, static_cast<std::size_t>(count)});
      done += static_cast<std::size_t>(count);
    } else if (count < 0 && errno == EAGAIN) {
      break;
    } else if (count == 0 || errno != EINTR) {
      close();  // a pseudo-terminal's end is EIO
    }
  }
}

void ForwardedOutput::close() {
  if (!line_.empty()) end_line();
  watch_.stop();
  reader_.reset();
}

void ForwardedOutput::take(std::string_view bytes) {
  if (label_.empty()) return sink_->append(bytes);
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    line_.append(bytes.substr(0, end));
    if (end != std::string_view::npos || line_.size() >= kLongestLine) end_line();
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  }
}

void ForwardedOutput::end_line() {
  sink_->append(label_);
  sink_->append(line_);
  sink_->append("\n");
  line_.clear();
}

}  // namespace memspan::launcher
