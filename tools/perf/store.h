// SPDX-License-Identifier: Apache-2.0
// The store at which the processes of a job meet for pools and transfers.
#pragma once

#include <functional>
#include <string>

#include "perf/meter.h"

namespace memspan::perf {

// The plan's, or one that PE 0 hosts at a free port of the loopback. All PEs call it together and
// get the same; it serves until PE 0's last interface is uninitialized.
Result<std::string> meeting_store(Meter& meter);

// How all PEs leave a store that PE 0 may host: what this process has there is destroyed on all of
// them first, then the others' interface is uninitialized, and PE 0's last.
void leave_together(const std::function<void()>& destroy,
                    const std::function<void()>& uninitialize);

// A failure of a call of MemFabric, with the library's words.
Status smem_failure(std::string_view call, int code);

}  // namespace memspan::perf
