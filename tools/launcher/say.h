// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace memspan::launcher {

// "oshrun: `line`" on stderr, in one piece.
void say(const std::string& line);

}  // namespace memspan::launcher
