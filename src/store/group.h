// SPDX-License-Identifier: Apache-2.0
// Barrier and allgather among `size` numbered members that meet at the store.
//
// Operation k of every member has the number k, so that members stay in step as long as all call
// the same operations in the same order. A failed operation (time-out, a member that is gone)
// still counts. A subgroup is a group of another name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "store/client.h"

namespace memspan {

// One thread at a time. The client must outlive it.
class Group {
 public:
  // `name` keeps groups apart; all members give the same. 0 <= rank < size.
  Group(StoreClient& client, std::string name, int rank, int size);

  // kTimeout names the ranks that did not come, kPeerLost the first that is gone.
  Status barrier(Deadline deadline);
  // Everybody's bytes, by rank; all together at most 8 MiB, and 1 GiB / size. Fails as barrier()
  // does.
  Result<std::vector<std::string>> allgather(std::string_view mine, Deadline deadline);
  // Gives up the place: the others' next operation fails with kPeerLost.
  Status leave(Deadline deadline);

 private:
  StoreClient& client_;
  std::string name_;
  int rank_;
  int size_;
  std::uint64_t operation_ = 0;
};

}  // namespace memspan
