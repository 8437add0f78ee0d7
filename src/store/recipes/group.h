// SPDX-License-Identifier: Apache-2.0
// Recipe: barrier and all-gather among the `size` numbered members of a group.
//
// Operation k of every member has the number k. So members stay in step as long as all call the
// same operations in the same order. A failed operation (timeout, a departed member) still counts,
// and a late member still finds what the others contributed. A member that left, or whose lease has
// ended, keeps its place: each operation that it has not contributed to fails for all.
//
//   GROUP/member/00001             rank 1, under its lease
//   GROUP/op/0000000000000007/00001  what rank 1 contributes to operation 7
//   GROUP/gone/00002               why rank 2 is gone, for later members
//   GROUP/members                  of a group that create_group() has made: names its members' own
//                                  keys, which exist before the group does
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "store/key_value_store.h"

namespace memspan {

// One thread at a time. The store must outlive it.
class StoreGroup {
 public:
  // All members pass the same `name`: that of a created group, or a new one. A name is new again
  // when all members of its group have left. 0 <= rank < size.
  StoreGroup(KeyValueStore& store, std::string name, int rank, int size);
  ~StoreGroup();

  // kTimeout names the missing ranks, kPeerLost the first departed one, kUnavailable the holder of
  // the rank, kInvalidArgument the other size that a member passed.
  Status barrier(Deadline deadline);
  // Returns all members' bytes, by rank; together at most kMaxValueBytes, and 1 GiB / size. Fails
  // like barrier().
  Result<std::vector<std::string>> allgather(std::string_view mine, Deadline deadline);
  // Gives up the place: the others' next operation fails with kPeerLost.
  Status leave(Deadline deadline);

 private:
  class ByVerbs;
  KeyValueStore& store_;
  std::string name_;
  int rank_;
  int size_;
  std::uint64_t operation_ = 0;
  std::unique_ptr<ByVerbs> by_verbs_;  // null if the store answers collectives itself
};

}  // namespace memspan
