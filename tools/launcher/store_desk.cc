// SPDX-License-Identifier: Apache-2.0
#include "launcher/store_desk.h"

#include <sys/socket.h>

#include <cerrno>

#include "launcher/job.h"

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
  char first = 0;
  ssize_t count = recv(descriptor(rank), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  Fd socket = std::move(sockets_[static_cast<std::size_t>(rank)]);
  if (count <= 0) return true;
  if (server_ == nullptr) {
    MEMSPAN_TRY_ASSIGN(server_, StoreServer::without_listener(), "starting the job's store");
  }
  MEMSPAN_PASS(server_->adopt(std::move(socket)));
  return false;
}

}  // namespace memspan::launcher
