// SPDX-License-Identifier: Apache-2.0
#include "launcher/say.h"

#include <fmt/format.h>
#include <unistd.h>

namespace memspan::launcher {

void say(const std::string& line) {
  std::string whole = fmt::format("oshrun: {}\n", line);
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, whole.data(), whole.size());
}

}  // namespace memspan::launcher
