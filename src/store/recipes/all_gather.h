// SPDX-License-Identifier: Apache-2.0
// Recipe: ad-hoc all-gather among `size` callers that agree on a name. Callers choose their own
// rank, and the next callers may be others.
//
//   NAME/allgather/first/slot      what rank 0 contributes, under its lease
//   NAME/allgather/first/decision  the callers of the last epoch, and its outcome
//   NAME/allgather/slot/00001      what rank 1 contributes, under its lease
//   NAME/allgather/slot/00002      ...
//   NAME/allgather/announcement    exists while rank 0 completes an epoch
//
// A caller fills the slot of its rank. Rank 0 watches all slots and swaps the decision: for one
// that has all callers' bytes if all slots are filled, for a failure if a caller is gone. The
// others watch only what rank 0 writes, so all callers of an epoch get the same outcome by a few
// requests each. The part of a caller that gives up still counts, so callers stay in step; if rank
// 0 has given up, the last one to come decides. In a creation, a caller that gives up empties its
// slot, and has not taken part.
#pragma once

#include "store/recipes/store_group.h"

namespace memspan::inline store {

// Returns all callers' bytes, by rank; each at most most_contributed().
//   kTimeout          names the missing ranks; the caller's part may still count
//   kPeerLost         names a departed caller that waited, or that took part in the last epoch with
//                     this one; returned to all that wait with rank 0, or for it
//   kUnavailable      another caller has that rank
//   kInvalidArgument  names the mismatch: the rank, the size, the bytes
Result<std::vector<std::string>> allgather(KeyValueStore& store, std::string_view name, int rank,
                                           int size, std::string_view mine, Deadline deadline,
                                           std::string_view alive = {});

// Ends this member's all-gathers of that name: waiting callers, also in this process, get
// kPeerLost. So do later callers that have met this one, unless the key `alive` that it passed to
// allgather() still exists: then it has only forgotten the name.
Status leave_allgather(KeyValueStore& store, std::string_view name, Deadline deadline);

// An all-gather, all or nothing: a caller that times out has not taken part, and a departed one
// fails it for all. The callers are the members of a new group (store_group.h) from that moment.
Result<CreatedGroup> create_group(KeyValueStore& store, std::string_view name, int rank, int size,
                                  std::string_view mine, Deadline deadline);

}  // namespace memspan::inline store
