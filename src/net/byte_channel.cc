// SPDX-License-Identifier: Apache-2.0
#include "net/byte_channel.h"

#include <sys/socket.h>

namespace memspan {
namespace {

ChannelStep failed(std::string_view what, ChannelStep::Next wait) {
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {.next = wait};
  const Status why = Status::from_errno(what);
  return {.next = ChannelStep::Next::kFailed, .failure = Status(Code::kStoreLost, why.message())};
}

}  // namespace

ChannelStep ByteChannel::read(char* into, std::size_t room) {
  ssize_t bytes = 0;
  do {
    bytes = ::recv(socket(), into, room, MSG_DONTWAIT);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) return failed("receiving", ChannelStep::Next::kReadable);
  if (bytes == 0) return {.next = ChannelStep::Next::kEnd};
  return {.bytes = static_cast<std::size_t>(bytes)};
}

ChannelStep ByteChannel::write(std::string_view bytes) {
  ssize_t sent = 0;
  do {
    sent = ::send(socket(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return failed("sending", ChannelStep::Next::kWritable);
  return {.bytes = static_cast<std::size_t>(sent)};
}

}  // namespace memspan
