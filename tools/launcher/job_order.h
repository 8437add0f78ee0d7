// SPDX-License-Identifier: Apache-2.0
// What an agent needs to know to start its host's processes. Has the store's secret in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "launcher/job.h"
#include "launcher/message_channel.h"
#include "launcher/options.h"

namespace memspan::launcher {

// A value.
struct JobOrder {
  Options options;  // without time-outs and remote shell, which are the launcher's
  HostPart part;
  Duration silence = kUsualSilence;      // of the other side, that ends the job
  std::string folder;                    // the launcher's working directory
  std::vector<std::string> environment;  // the launcher's

  std::string encode() const;
  static Result<JobOrder> decode(std::string_view text);
};

}  // namespace memspan::launcher
