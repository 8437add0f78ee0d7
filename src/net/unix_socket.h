// SPDX-License-Identifier: Apache-2.0
// Unix sockets in the abstract namespace (nothing in the file system) that carry descriptors.
#pragma once

#include <sys/socket.h>

#include <vector>

#include "core/clock.h"
#include "core/fd.h"

namespace memspan::inline net {

// `name` has no leading zero byte. Message boundaries are kept (SOCK_SEQPACKET).
Result<Fd> unix_listen(std::string_view name);
// Connects without waiting: kTimeout if too many connections already wait to be accepted.
Result<Fd> unix_connect_now(std::string_view name);
Result<Fd> unix_accept(const Fd& listener, Deadline deadline);

// The process at the other end, which listened or connected, and its user, as the kernel reports
// them. `pid` is -1 if the process is in another pid namespace.
Result<ucred> unix_peer(const Fd& socket);

struct UnixMessage {
  std::string bytes;
  std::vector<Fd> descriptors;
};
inline constexpr std::size_t kMostUnixBytes = 1024;
inline constexpr std::size_t kMostUnixDescriptors = 8;

// Sends one message of at most kMostUnixBytes and kMostUnixDescriptors.
Status unix_send(const Fd& socket, std::string_view bytes, const std::vector<int>& descriptors);
// kTimeout, or kUnavailable when the other end is closed.
Result<UnixMessage> unix_receive(const Fd& socket, Deadline deadline);

}  // namespace memspan::inline net
