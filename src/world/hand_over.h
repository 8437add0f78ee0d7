// SPDX-License-Identifier: Apache-2.0
// Handing descriptors from the keeper of a host (who made the board and the heap) to the other
// processes of the job there: over an abstract Unix socket with a random 128-bit name, after the
// kernel's word on the caller's user and a nonce that only members know.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/fd.h"
#include "core/status.h"

namespace memspan {

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
  static Result<HandOver> open();
  // "NAME NONCE", for take_over() of the members; to be told over the store only.
  const std::string& ticket() const { return ticket_; }
  // Serves every rank from 1 to `size` - 1 once and gives what is needed to watch them, by rank
  // (entry 0 is empty). kTimeout names the ranks that did not come. Strangers are dropped. While
  // somebody is missing `check` is asked ten times a second; its failure ends serving.
  Result<std::vector<ServedMember>> serve(int size, int board, int heap, Deadline deadline,
                                          const std::function<Status()>& check = Status::ok);

 private:
  HandOver(Fd listener, std::string ticket)
      : listener_(std::move(listener)), ticket_(std::move(ticket)) {}
  Fd listener_;
  std::string ticket_;
};

// The member's side.
Result<HandedOver> take_over(const std::string& ticket, int rank, Deadline deadline);

}  // namespace memspan
