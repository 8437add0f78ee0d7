// SPDX-License-Identifier: Apache-2.0
// A name at the store, which one living process has at a time. The claim outlives the store: when
// the store comes back, the record is written again. If another process has the name by then, that
// is logged once, and the name comes back when that process ends.
#pragma once

#include "fabric/member.h"
#include "fabric/transfer/endpoint_record.h"

namespace memspan::transfer {

// Thread-safe, except for its end.
class NameClaim {
 public:
  // Writes the record under the lease of the member's session. kUnavailable: a living process has
  // the name. Waits a few seconds for one that has just died, until the store learns of it.
  static Result<std::unique_ptr<NameClaim>> take(std::shared_ptr<Member> member,
                                                 const EndpointRecord& record, Deadline deadline);
  // Gives the name up. If the store is away, the name ends with the session.
  ~NameClaim();
  NameClaim(const NameClaim&) = delete;
  NameClaim& operator=(const NameClaim&) = delete;

 private:
  struct State;
  NameClaim(std::shared_ptr<Member> member, std::shared_ptr<State> state)
      : member_(std::move(member)), state_(std::move(state)) {}
  Status claim(const Deadline& deadline);
  static Status renew(const std::shared_ptr<State>& state, KeyValueStore& session,
                      const Deadline& deadline);

  const std::shared_ptr<Member> member_;
  const std::shared_ptr<State> state_;  // shared with watches of sessions
  std::uint64_t renewal_ = 0;
};

}  // namespace memspan::transfer
