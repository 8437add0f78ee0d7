// SPDX-License-Identifier: Apache-2.0
// Recipe: ad-hoc all-gather among `size` callers that agree on a name. Callers choose their own
// rank, and the next callers may be others.
//
//   NAME/allgather/slot/00000      what rank 0 contributes, under its lease
//   NAME/allgather/slot/00001      ...
//   NAME/allgather/wait/collector  under the lease of the caller that decides
//   NAME/allgather/wait/decision   the callers of the last epoch, and its outcome
//   NAME/allgather/handover        those that waited when the last one to decide stopped
//
// A caller fills the slot of its rank. The first one that waits watches the slots and swaps the
// decision: for one that has all callers' bytes if all slots are filled, for a failure if a caller
// is gone. The others watch only the decision, so all callers of an epoch get the same outcome by
// a few requests each. A caller that gives up leaves its part in the slot; in a creation it swaps
// the decision for one that the part does not count. If the caller that decides goes, the next one
// takes its place, and learns from the handover which callers left in between.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "store/key_value_store.h"

namespace memspan {

// Returns all callers' bytes, by rank; each at most most_contributed().
//   kTimeout          names the missing ranks; the caller's bytes may still count
//   kPeerLost         names a departed caller that waited, or that took part in the last epoch with
//                     this one; returned to all that wait
//   kUnavailable      another caller has that rank
//   kInvalidArgument  names the mismatch: the rank, the size, the bytes
// Callers agree on the epochs by calling in the same order; a failed one counts.
Result<std::vector<std::string>> allgather(KeyValueStore& store, std::string_view name, int rank,
                                           int size, std::string_view mine, Deadline deadline);

// Ends this member's all-gathers of that name: waiting callers, also in this process, get
// kPeerLost.
Status leave_allgather(KeyValueStore& store, std::string_view name, Deadline deadline);

// A group that its members have just made. A value.
struct CreatedGroup {
  std::string name;                        // unique in the store
  std::vector<std::string> contributions;  // by rank
};

// No caller returns before all have called.
Status barrier(KeyValueStore& store, std::string_view name, int rank, int size, Deadline deadline);

// An all-gather, all or nothing: a caller that times out has not taken part, and a departed one
// fails it for all. The callers are the members of a new group (group.h) from that moment.
Result<CreatedGroup> create_group(KeyValueStore& store, std::string_view name, int rank, int size,
                                  std::string_view mine, Deadline deadline);

}  // namespace memspan
