// SPDX-License-Identifier: Apache-2.0
#include "launcher/message_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "core/bytes.h"

namespace memspan::launcher {
namespace {

constexpr std::uint32_t kLongestMessage = std::uint32_t{64} << 20;
constexpr std::size_t kLongestLine = 256;
constexpr std::size_t kReadBytes = std::size_t{64} << 10;

Status make_non_blocking(const Fd& descriptor) {
  const int flags = fcntl(descriptor.get(), F_GETFL);
  if (flags < 0 || fcntl(descriptor.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return Status::from_errno("preparing a connection to an agent");
  return Status::ok();
}

}  // namespace

std::string greeting() {
  return "memspan agent " MEMSPAN_VERSION "\n";
}

Result<MessageChannel> MessageChannel::make(Fd in, Fd out) {
  MEMSPAN_PASS(make_non_blocking(in));
  MEMSPAN_PASS(make_non_blocking(out));
  return MessageChannel(std::move(in), std::move(out));
}

void MessageChannel::send(const Message& message) {
  ByteWriter body;
  body.u8(static_cast<std::uint8_t>(message.kind));
  body.u32(static_cast<std::uint32_t>(message.rank));
  body.u32(static_cast<std::uint32_t>(message.process));
  body.u32(static_cast<std::uint32_t>(message.value));
  body.text(message.text);
  ByteWriter frame;
  frame.text(body.bytes());
  send_line(frame.bytes());
}

void MessageChannel::send_line(const std::string& line) {
  outgoing_ += line;
  flush();
}

void MessageChannel::flush() {
  while (wants_to_write()) {
    const ssize_t count = write(out_.get(), outgoing_.data() + sent_, outgoing_.size() - sent_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    told_ = Clock::now();
    sent_ = count < 0 ? outgoing_.size() : sent_ + static_cast<std::size_t>(count);
  }
  outgoing_.clear();
  sent_ = 0;
}

bool MessageChannel::receive() {
  char buffer[kReadBytes];
  // At most what a reader of a pipe can be behind, so that no channel delays the others.
  for (int rounds = 0; is_open_ && rounds < 4; ++rounds) {
    const ssize_t count = read(in_.get(), buffer, sizeof buffer);
    if (count > 0) {
      incoming_.append(buffer, static_cast<std::size_t>(count));
      heard_ = Clock::now();
    } else if (count < 0 && errno == EAGAIN) {
      break;
    } else if (count == 0 || errno != EINTR) {
      is_open_ = false;
    }
  }
  return is_open_;
}

std::optional<std::string> MessageChannel::take_line() {
  const std::size_t end = incoming_.find('\n');
  if (end == std::string::npos && incoming_.size() < kLongestLine && is_open_) return std::nullopt;
  const std::string line =
      incoming_.substr(0, std::min(end == std::string::npos ? end : end + 1, kLongestLine));
  incoming_.erase(0, line.size());
  return line;
}

Result<std::optional<Message>> MessageChannel::next() {
  if (incoming_.size() < sizeof(std::uint32_t)) return std::optional<Message>();
  ByteReader head(std::string_view(incoming_).substr(0, sizeof(std::uint32_t)));
  const std::uint32_t length = head.u32();
  if (length > kLongestMessage)
    return Status(Code::kInvalidArgument, fmt::format("a message of {} bytes", length));
  if (incoming_.size() - sizeof length < length) return std::optional<Message>();
  ByteReader body(std::string_view(incoming_).substr(sizeof length, length));
  Message message;
  message.kind = static_cast<Kind>(body.u8());
  message.rank = static_cast<int>(body.u32());
  message.process = static_cast<int>(body.u32());
  message.value = static_cast<int>(body.u32());
  message.text = body.text();
  if (!body.is_finished() || message.kind > Kind::kAlive)
    return Status(Code::kInvalidArgument, "a message that cannot be read");
  incoming_.erase(0, sizeof length + length);
  return std::optional<Message>(std::move(message));
}

void MessageChannel::keep_alive(Duration limit) {
  if (Clock::now() - told_ > limit / 4) {
    told_ = Clock::now();
    send({.kind = Kind::kAlive});
  }
}

}  // namespace memspan::launcher
