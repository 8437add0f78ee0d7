// SPDX-License-Identifier: Apache-2.0
// A name at the store, which one living process has at a time. The claim outlives the store: when
// that comes back the record is written again, unless another one has the name by then, which is
// told once. When that one ends, the name comes back, too.
#pragma once

#include <cstdint>
#include <memory>

#include "core/clock.h"
#include "fabric/member.h"
#include "fabric/transfer/endpoint_record.h"

namespace memspan::transfer {

// Thread-safe, but for its end.
class NameClaim {
 public:
  // Writes the record, which goes with the member's session. kUnavailable when a living process has
  // the name. One that has just died is waited for, a few seconds at most: the store learns of it.
  static Result<std::unique_ptr<NameClaim>> take(std::shared_ptr<Member> member,
                                                 const EndpointRecord& record, Deadline deadline);
  // Gives the name up. At a store that is away it is gone with the session.
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
