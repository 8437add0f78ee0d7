// SPDX-License-Identifier: Apache-2.0
// Recipe: ad-hoc all-gather among `size` callers that agree on a name. Callers choose their own
// rank, and the next callers may be others.
//
//   NAME/allgather/slot/00000   what rank 0 contributes, under its lease
//   NAME/allgather/slot/00001   ...
//   NAME/allgather/decision     who took part in the last epoch, and how it ended
//
// A caller fills the slot of its rank. Whoever sees all slots filled swaps the decision for one
// that names them; whoever sees that a caller is gone swaps it for one that fails. One swap wins,
// so all callers of an epoch come to the same end. A caller that gives up swaps the decision, too:
// it has either taken part or it has not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "store/collective_service.h"
#include "store/key_value_store.h"

namespace memspan {

// Everybody's bytes, by rank; all together at most kMaxValueBytes, and 1 GiB / size. A store
// without a CollectiveService takes of each caller no more than half of its share.
//   kTimeout          names the ranks that did not come; the caller's bytes may count all the same
//   kPeerLost         a caller that waited, or that took part in the last epoch as this one did, is
//                     gone; for all that wait, with its name
//   kUnavailable      another caller has that rank
//   kInvalidArgument  names what does not fit: the rank, the size, the bytes
// Callers that agree on the epochs call in the same order; a failed one counts.
Result<std::vector<std::string>> allgather(KeyValueStore& store, std::string_view name, int rank,
                                           int size, std::string_view mine, Deadline deadline);

// Ends this member's all-gathers of that name: those who wait, in this process too, get kPeerLost.
Status leave_allgather(KeyValueStore& store, std::string_view name, Deadline deadline);

// Nobody returns before all have called.
Status barrier(KeyValueStore& store, std::string_view name, int rank, int size, Deadline deadline);

// An all-gather, all or nothing: a caller that times out has not taken part, and one that is gone
// fails it for all. Those who took part are the members of a new group (group.h) from that moment.
Result<CreatedGroup> create_group(KeyValueStore& store, std::string_view name, int rank, int size,
                                  std::string_view mine, Deadline deadline);

}  // namespace memspan
