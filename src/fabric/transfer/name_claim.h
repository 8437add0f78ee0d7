// SPDX-License-Identifier: Apache-2.0
// Taking a name at the store, which one living process has at a time.
#pragma once

#include "core/clock.h"
#include "fabric/member.h"
#include "fabric/transfer/endpoint_record.h"

namespace memspan::transfer {

// Writes the record, which goes with the member's session. kUnavailable when a living process has
// the name. One that has just died is waited for, a few seconds at most: the store learns of it.
Status claim_name(Member& member, const EndpointRecord& record, Deadline deadline);

}  // namespace memspan::transfer
