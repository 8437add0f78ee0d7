// SPDX-License-Identifier: Apache-2.0
// The output of several hosts on its way to the launcher's stdout and stderr. With --label lines
// stay whole; without it bytes are passed on as they come, as from the processes of one host.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/options.h"
#include "launcher/output_sink.h"

namespace memspan::launcher {

// One thread. Streams are 1 and 2.
class HostOutput {
 public:
  HostOutput(std::size_t hosts, Label label) : label_(label), sources_(hosts) {}

  void append(std::size_t host, int stream, std::string_view text);
  // Nothing more comes from there.
  void end(std::size_t host);
  void flush();

  std::size_t pending() const { return sinks_[0].pending() + sinks_[1].pending(); }
  bool is_stalled(int stream) const { return sink(stream).pending() > 0; }
  // The errno with which a write failed, once each.
  int take_error();
  // How many bytes of the host's have been passed on, or nearly, since the last call.
  std::size_t take_passed_on(std::size_t host, int stream);

 private:
  struct Source {
    std::string line;        // that has not ended
    std::size_t passed = 0;  // bytes not reported by take_passed_on()
  };
  const OutputSink& sink(int stream) const { return sinks_[static_cast<std::size_t>(stream - 1)]; }

  Label label_;
  std::array<OutputSink, 2> sinks_{OutputSink(1), OutputSink(2)};
  std::array<bool, 2> has_failed_{};
  std::vector<std::array<Source, 2>> sources_;
};

}  // namespace memspan::launcher
