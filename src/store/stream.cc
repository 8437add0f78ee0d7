// SPDX-License-Identifier: Apache-2.0
#include "store/stream.h"

#include <sys/socket.h>

#include <cerrno>

namespace memspan {
namespace {

class PlainStream final : public StoreStream {
 public:
  using StoreStream::StoreStream;
  StreamStep handshake() override { return {}; }
  StreamStep read(char* into, std::size_t room) override { return receive(socket(), into, room); }
  StreamStep write(std::string_view bytes) override { return send(socket(), bytes); }
};

StreamStep failed(std::string_view what, StreamStep::Next wait) {
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {.next = wait};
  const Status why = Status::from_errno(what);
  return {.next = StreamStep::Next::kFailed, .failure = Status(Code::kStoreLost, why.message())};
}

}  // namespace

StreamStep StoreStream::receive(int socket, char* into, std::size_t room) {
  ssize_t bytes = 0;
  do {
    bytes = ::recv(socket, into, room, MSG_DONTWAIT);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) return failed("receiving", StreamStep::Next::kReadable);
  if (bytes == 0) return {.next = StreamStep::Next::kEnd};
  return {.bytes = static_cast<std::size_t>(bytes)};
}

StreamStep StoreStream::send(int socket, std::string_view bytes) {
  ssize_t sent = 0;
  do {
    sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return failed("sending", StreamStep::Next::kWritable);
  return {.bytes = static_cast<std::size_t>(sent)};
}

std::unique_ptr<StoreStream> make_plain_stream(Fd socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

}  // namespace memspan
