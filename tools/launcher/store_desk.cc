// SPDX-License-Identifier: Apache-2.0
#include "launcher/store_desk.h"

#include <sys/socket.h>

#include "launcher/job.h"
#include "net/unix_socket.h"

namespace memspan::launcher {

Result<Fd> StoreDesk::open(int rank) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Status::from_errno("making a process's socket to the store");
  sockets_[static_cast<std::size_t>(rank)].reset(ends[0]);
  Fd theirs(ends[1]);
  return duplicate_high(theirs.get());
}

Result<bool> StoreDesk::serve(int rank) {
  auto came =
      unix_receive(sockets_[static_cast<std::size_t>(rank)], Deadline::after(Duration::zero()));
  if (came.code() == Code::kTimeout) return false;
  if (!came.is_ok()) return true;
  for (Fd& connection : came->descriptors) {
    if (server_ == nullptr) {
      MEMSPAN_TRY_ASSIGN(server_, StoreServer::without_listener(), "starting the job's store");
    }
    MEMSPAN_PASS(server_->adopt(std::move(connection)));
  }
  return false;
}

}  // namespace memspan::launcher
