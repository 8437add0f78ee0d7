// SPDX-License-Identifier: Apache-2.0
// Names of endpoints: "10.0.0.1:6000", "[fe80::1]:6000", "node7:6000". They look like addresses,
// but nothing listens there, and no name server is asked.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace memspan::transfer {

// The one spelling that all spellings of a name have in common. kInvalidArgument with the text and
// what is allowed.
Result<std::string> normal_name(std::string_view text);

}  // namespace memspan::transfer
