// SPDX-License-Identifier: Apache-2.0
// Recipe: ranks by arrival. Within a scope, every member has one number: the lowest free one, or
// the one it asks for. It keeps the number until it returns that or its lease ends.
//
//   SCOPE/rank/00000 = size, generation, lease, member      under the lease
//   SCOPE/rank/00003 = ...
#pragma once

#include <string_view>

#include "core/clock.h"
#include "core/status.h"
#include "store/key_value_store.h"
#include "store/rank_service.h"

namespace memspan {

// `rank` -1: the lowest free one. `size` 0: unknown; the first member that knows the size sets it
// for as long as a rank is taken. kInvalidArgument names both values if the sizes differ or the
// rank is beyond the size. kUnavailable names the holder of the rank, or reports that all are
// taken.
Result<StoreRank> take_rank(KeyValueStore& store, std::string_view scope, int rank, int size,
                            Deadline deadline);
// take_rank() for a process that may replace one that has just died, which only the built-in server
// notices at once. On another store it waits as long as a lease may hold, if no rank is free or the
// one asked for is taken.
Result<StoreRank> take_freed_rank(KeyValueStore& store, std::string_view scope, int rank, int size,
                                  Deadline deadline);
// kNotFound when this member has none in the scope.
Status give_rank(KeyValueStore& store, std::string_view scope, Deadline deadline);

}  // namespace memspan
