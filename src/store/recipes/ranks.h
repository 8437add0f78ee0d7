// SPDX-License-Identifier: Apache-2.0
// Recipe: ranks by arrival. Within a scope every member has one number, the lowest that is free or
// the one it asks for, until it gives the number up or its lease ends.
//
//   SCOPE/rank/00000 = size, generation, lease, member      under the lease
//   SCOPE/rank/00003 = ...
#pragma once

#include <string_view>

#include "core/clock.h"
#include "core/status.h"
#include "store/collective_service.h"
#include "store/key_value_store.h"

namespace memspan {

// `rank` -1: the lowest that is free. `size` 0: unknown; the first member that knows it says it for
// all while anybody has a rank. kInvalidArgument names both values when sizes differ or the rank is
// beyond the size, kUnavailable who has the rank, or that all are taken.
Result<StoreRank> take_rank(KeyValueStore& store, std::string_view scope, int rank, int size,
                            Deadline deadline);
// The same for who may take the place of a process that has just died: only the built-in server has
// noticed that at once. Where rank -1 finds none free, or the one asked for is taken, others wait
// for as long as a lease may still hold.
Result<StoreRank> take_freed_rank(KeyValueStore& store, std::string_view scope, int rank, int size,
                                  Deadline deadline);
// kNotFound when this member has none in the scope.
Status give_rank(KeyValueStore& store, std::string_view scope, Deadline deadline);

}  // namespace memspan
