// SPDX-License-Identifier: Apache-2.0
// Barrier and allgather among `size` numbered members, over keys of the store.
//
// Operation k of every member has the number k, so that members stay in step as long as all call
// the same operations in the same order. A failed operation (time-out, lost store) still counts.
#pragma once

#include <cstdint>
#include <optional>
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
  // `name` keeps groups apart; all members give the same, and no other group that the store has
  // ever seen had it. At most 2000 bytes. 0 <= rank < size.
  Group(StoreClient& client, std::string name, int rank, int size);

  // kTimeout names the ranks that did not arrive (asking who did may take 2 s more).
  Status barrier(Deadline deadline);
  // Everybody's bytes, by rank. All together have at most 64 MiB, so each gives at most
  // 64 MiB / size - 8 bytes: kInvalidArgument otherwise. kTimeout as for barrier().
  Result<std::vector<std::string>> allgather(std::string_view mine, Deadline deadline);

 private:
  // By rank; nullopt: has not arrived.
  using Parts = std::vector<std::optional<std::string>>;

  std::string key(std::uint64_t operation, std::string_view what) const;
  Status arrive(std::uint64_t operation, std::string_view mine, Deadline deadline);
  Status explain_timeout(std::uint64_t operation, const Status& timeout);
  Result<Parts> read_parts(std::uint64_t operation, Deadline deadline);
  void forget_before(std::uint64_t operation, Deadline deadline);

  StoreClient& client_;
  std::string name_;
  int rank_;
  int size_;
  std::uint64_t operation_ = 0;
  std::uint64_t kept_from_ = 0;  // rank 0: the first operation whose keys may still be there
};

}  // namespace memspan
