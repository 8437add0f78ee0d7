// SPDX-License-Identifier: Apache-2.0
// Runs the handlers of an io_context when any of them may throw.
#pragma once

#include <exception>

#include "store/asio.h"

namespace memspan {

// Runs until no work is left. An exception ends only the handler that threw it. `failed` receives
// the exception and must not throw.
template <typename Failed>
void run_handlers(asio::io_context& context, Failed failed) {
  for (;;) {
    try {
      context.run();
      return;
    } catch (const std::exception& error) {
      failed(error);
    }
  }
}

}  // namespace memspan
