// SPDX-License-Identifier: Apache-2.0
// Starting a thread, which fails by an exception in the standard library and by a Status here.
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/status.h"

namespace memspan {

// A thread that runs `run`. kSystem when there can be none; `whose` completes "starting the ...".
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
