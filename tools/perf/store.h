// SPDX-License-Identifier: Apache-2.0
// The store at which the processes of a job meet for pools and transfers.
#pragma once

#include <string>

#include "perf/meter.h"

namespace memspan::perf {

// The plan's, or one that PE 0 hosts at a free port of the loopback. All PEs call it together and
// get the same; it serves until PE 0's last interface is uninitialized.
Result<std::string> meeting_store(Meter& meter);

// A failure of a call of MemFabric, with the library's words.
Status smem_failure(std::string_view call, int code);

}  // namespace memspan::perf
