// SPDX-License-Identifier: Apache-2.0
#include "net/byte_channel.h"

#include <sys/socket.h>

#include <cerrno>

namespace memspan {
namespace {

class PlainStream final : public ByteChannel {
 public:
  using ByteChannel::ByteChannel;
  ChannelStep handshake() override { return {}; }
  ChannelStep read(char* into, std::size_t room) override { return receive(socket(), into, room); }
  ChannelStep write(std::string_view bytes) override { return send(socket(), bytes); }
};

ChannelStep failed(std::string_view what, ChannelStep::Next wait) {
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {.next = wait};
  const Status why = Status::from_errno(what);
  return {.next = ChannelStep::Next::kFailed, .failure = Status(Code::kStoreLost, why.message())};
}

}  // namespace

ChannelStep ByteChannel::receive(int socket, char* into, std::size_t room) {
  ssize_t bytes = 0;
  do {
    bytes = ::recv(socket, into, room, MSG_DONTWAIT);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) return failed("receiving", ChannelStep::Next::kReadable);
  if (bytes == 0) return {.next = ChannelStep::Next::kEnd};
  return {.bytes = static_cast<std::size_t>(bytes)};
}

ChannelStep ByteChannel::send(int socket, std::string_view bytes) {
  ssize_t sent = 0;
  do {
    sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return failed("sending", ChannelStep::Next::kWritable);
  return {.bytes = static_cast<std::size_t>(sent)};
}

std::unique_ptr<ByteChannel> make_plain_channel(Fd socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

}  // namespace memspan
