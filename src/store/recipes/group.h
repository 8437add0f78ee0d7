// SPDX-License-Identifier: Apache-2.0
// Recipe: barrier and all-gather among the `size` numbered members of a group.
//
// Operation k of every member has the number k, so that members stay in step as long as all call
// the same operations in the same order. A failed operation (time-out, a member that is gone)
// still counts, and a member that comes late to it still finds what the others contributed. A
// member whose lease has ended, or that left, has its place for good: each operation that it has
// not contributed to fails for all.
//
//   GROUP/member/00001             rank 1, under its lease
//   GROUP/op/0000000000000007/00001  what rank 1 contributes to operation 7
//   GROUP/gone/00002               why rank 2 is gone, for those who come later
//   GROUP/members                  of a group that create_group() has made; its members' own keys
//                                  are named there, and stand before the group does
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
  // `name` keeps groups apart; all members give the same: that of a created group, or one that no
  // group had before, unless all of that group left it. 0 <= rank < size.
  StoreGroup(KeyValueStore& store, std::string name, int rank, int size);
  ~StoreGroup();

  // kTimeout names the ranks that did not come, kPeerLost the first that is gone, kUnavailable who
  // has the rank, kInvalidArgument the other size that somebody said.
  Status barrier(Deadline deadline);
  // Everybody's bytes, by rank; all together at most kMaxValueBytes, and 1 GiB / size. Fails as
  // barrier() does.
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
  std::unique_ptr<ByVerbs> by_verbs_;  // null where the store answers collectives itself
};

}  // namespace memspan
