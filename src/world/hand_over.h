// SPDX-License-Identifier: Apache-2.0
// Handing descriptors from the keeper of a host (who made the board and the heap) to the other
// processes of the job there: over an abstract Unix socket with a random 128-bit name, after the
// kernel's word on the caller's user and process. Members tell each other which processes they are.
// So what they tell is of no use to who only hears it: he is none of those processes. Where the
// kernel cannot compare them, because a member is in another pid namespace, its user counts, and a
// nonce when members have a private channel to tell it over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/fd.h"
#include "core/status.h"

namespace memspan {

// A process as the kernel knows it. A value.
struct ProcessIdentity {
  std::int64_t process;
  std::int64_t pid_namespace;  // in which `process` counts; 0: not known

  static ProcessIdentity own();
  std::string to_string() const;  // "PROCESS NAMESPACE", for parse()
  static Result<ProcessIdentity> parse(std::string_view text);
};

// What members exchange texts over.
enum class Channel {
  kPrivate,  // only members can read it: a store of ours
  kOpen,     // anybody may listen: the caller's own way
};

// What a member gets: the keeper's board and heap, and how it learns of the keeper's end.
struct HandedOver {
  Fd board;
  Fd heap;
  Fd keeper;      // a pidfd
  Fd connection;  // to the keeper; it is closed when the keeper calls exec(), too
};

// The same of a member, for the keeper.
struct ServedMember {
  Fd pidfd;
  Fd connection;
};

// The keeper's side. Move-only; one thread at a time.
class HandOver {
 public:
  static Result<HandOver> open(Channel channel);
  // "NAME NONCE", for take_over() of the members; on an open channel without a nonce.
  const std::string& ticket() const { return ticket_; }
  // Serves each of `members` but the first once and gives what is needed to watch them, by rank
  // (entry 0 is empty). kTimeout names the ranks that did not come. Strangers are dropped. While
  // somebody is missing `check` is asked ten times a second; its failure ends serving.
  Result<std::vector<ServedMember>> serve(const std::vector<ProcessIdentity>& members, int board,
                                          int heap, Deadline deadline,
                                          const std::function<Status()>& check = Status::ok);

 private:
  HandOver(Fd listener, std::string ticket)
      : listener_(std::move(listener)), ticket_(std::move(ticket)) {}
  Fd listener_;
  std::string ticket_;
};

// The member's side.
Result<HandedOver> take_over(const ProcessIdentity& keeper, const std::string& ticket, int rank,
                             Deadline deadline);

}  // namespace memspan
