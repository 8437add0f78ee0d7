// SPDX-License-Identifier: Apache-2.0
#include "core/check.h"

#include <cstdlib>
#include <string>

#include "core/log.h"

namespace memspan {

void check_failed(const char* condition, const char* file, int line) {
  log_line(LogLevel::kFatal, std::string("internal error at ") + file + ":" + std::to_string(line) +
                                 ": " + condition + " does not hold");
  std::abort();
}

}  // namespace memspan
