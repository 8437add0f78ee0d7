// SPDX-License-Identifier: Apache-2.0
// The launcher's ends of the processes' sockets to the store.
//
// A socket stays open for as long as its process lives and runs its program; it may carry nothing.
// A process that needs the store makes a socket pair and sends one end here. A job on one host may
// never do so, so the first such process starts the server and its thread.
#pragma once

#include <memory>
#include <vector>

#include "core/fd.h"
#include "core/status.h"
#include "store/server.h"

namespace memspan::launcher {

// One thread at a time.
class StoreDesk {
 public:
  explicit StoreDesk(int processes) : sockets_(static_cast<std::size_t>(processes)) {}

  // Makes rank's pair of sockets and returns the process's end, a high number.
  Result<Fd> open(int rank);
  // The launcher's end, for an event loop.
  int descriptor(int rank) const { return sockets_[static_cast<std::size_t>(rank)].get(); }
  // Call when the launcher's end became readable: gives received sockets to the store. True when
  // the process's end is closed.
  Result<bool> serve(int rank);

 private:
  std::vector<Fd> sockets_;
  std::unique_ptr<StoreServer> server_;
};

}  // namespace memspan::launcher
