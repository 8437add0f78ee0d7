// SPDX-License-Identifier: Apache-2.0
// Starts a thread and reports a failure as a Status, not as the standard library's exception.
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/status.h"

namespace memspan {

// A thread that runs `run`. kSystem if it cannot start; `whose` completes "the thread of ...".
template <typename Run>
Result<std::thread> start_thread(std::string_view whose, Run run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return Status(Code::kSystem,
                  "starting the thread of " + std::string(whose) + ": " + error.what());
  }
}

}  // namespace memspan
