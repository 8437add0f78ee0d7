// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/notification_queue.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "core/interrupt.h"
#include "store/fields.h"

namespace memspan::transfer {
namespace {

constexpr std::size_t kMostNameBytes = 64;
constexpr std::size_t kMostFrameBytes = 4 + kMostNameBytes + 4 + kMostMessageBytes;

// For room for several hundred messages; the system's own limit counts if it is less.
constexpr int kBufferBytes = 1 << 20;

// How many strange frames are skipped whatever the deadline.
constexpr int kMostStrange = 1000;

}  // namespace

Result<NotificationQueue> NotificationQueue::create() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return Status::from_errno("making a notification queue");
  Fd receiving(ends[0]), sending(ends[1]);
  MEMSPAN_PASS_ASSIGN(auto ended, WakeEvent::create());
  setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof kBufferBytes);
  return NotificationQueue(std::move(receiving), std::move(sending), std::move(ended));
}

Result<Notification> NotificationQueue::receive(Deadline deadline) const {
  std::array<char, kMostFrameBytes + 1> frame;
  int strange = 0;
  while (true) {
    const ssize_t got = recv(receiving_.get(), frame.data(), frame.size(), 0);
    if (got >= 0) {
      FieldReader reader({frame.data(), static_cast<std::size_t>(got)});
      Notification notification;
      reader(notification.sender, notification.message);
      if (reader.is_finished() && notification.message.size() <= kMostMessageBytes)
        return notification;
      if (got == 0)
        return Status(Code::kSystem, "a peer has closed the notification queue of this endpoint");
      if (++strange > kMostStrange && deadline.has_passed())
        return Status(Code::kTimeout, "no message has come, only bytes that are not one");
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
      return Status::from_errno("reading a notification queue");
    pollfd polled[] = {{receiving_.get(), POLLIN, 0}, {ended_.descriptor(), POLLIN, 0}};
    MEMSPAN_PASS(poll_ready(polled, deadline, "no message has come"));
    if (polled[1].revents != 0)
      return Status(Code::kUnavailable, "the endpoint is being destroyed");
  }
}

Status send_notification(const Fd& sending_end, const Notification& notification) {
  FieldWriter writer;
  writer(notification.sender, notification.message);
  const std::string frame = writer.take();
  while (send(sending_end.get(), frame.data(), frame.size(), MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
      return {Code::kTimeout, "the peer's notification queue is full"};
    if (errno == EPIPE || errno == ECONNRESET)
      return {Code::kPeerLost, "the peer no longer reads its notification queue"};
    return Status::from_errno("sending a message");
  }
  return Status::ok();
}

}  // namespace memspan::transfer
