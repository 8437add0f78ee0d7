// SPDX-License-Identifier: Apache-2.0
// An all-gather of texts among the processes of a job, before they can reach each other.
#pragma once

#include "core/agreement.h"
#include "node/segment.h"
#include "world/launch.h"

namespace memspan {

// Over the launcher's store. It connects at the first call. A wait for a process that has died ends
// with kPeerLost; one that comes late is waited for. `segment` must outlive it.
Exchange exchange_over_launcher(const Launch& launch, const NodeSegment& segment);

}  // namespace memspan
