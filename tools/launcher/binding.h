// SPDX-License-Identifier: Apache-2.0
// Which core each process keeps to.
#pragma once

#include <vector>

#include "core/status.h"
#include "launcher/options.h"

namespace memspan::launcher {

// One core number per process, within the launcher's own affinity mask: whole cores first, then
// their second hardware threads. Empty: no process is bound. If binding was asked for:
// kInvalidArgument with more processes than cores, kUnavailable if the system refuses it.
Result<std::vector<int>> choose_cores(Binding binding, int processes);

}  // namespace memspan::launcher
