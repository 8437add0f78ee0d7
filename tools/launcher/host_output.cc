// SPDX-License-Identifier: Apache-2.0
#include "launcher/host_output.h"

#include <utility>

namespace memspan::launcher {

void HostOutput::append(std::size_t host, int stream, std::string_view text) {
  const auto index = static_cast<std::size_t>(stream - 1);
  Source& source = sources_[host][index];
  source.passed += text.size();
  if (label_ == Label::kNone) return sinks_[index].append(text);
  const std::size_t end = text.rfind('\n') + 1;  // 0 without a line's end
  source.line.append(text.substr(0, end));
  if (end > 0) sinks_[index].append(std::exchange(source.line, {}));
  source.line.append(text.substr(end));
}

void HostOutput::end(std::size_t host) {
  for (std::size_t index = 0; index < sinks_.size(); ++index)
    if (std::string& line = sources_[host][index].line; !line.empty())
      sinks_[index].append(std::exchange(line, {}) + "\n");
  flush();
}

void HostOutput::flush() {
  for (OutputSink& sink : sinks_) sink.flush();
}

int HostOutput::take_error() {
  for (std::size_t index = 0; index < sinks_.size(); ++index)
    if (sinks_[index].error() != 0 && !std::exchange(has_failed_[index], true))
      return sinks_[index].error();
  return 0;
}

std::size_t HostOutput::take_passed_on(std::size_t host, int stream) {
  if (sink(stream).is_full()) return 0;
  return std::exchange(sources_[host][static_cast<std::size_t>(stream - 1)].passed, 0);
}

}  // namespace memspan::launcher
