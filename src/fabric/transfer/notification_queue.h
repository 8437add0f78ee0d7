// SPDX-License-Identifier: Apache-2.0
// Short messages to an endpoint: a pair of sockets whose sending end every peer gets. The kernel
// keeps the messages whole and in order, even if a sender dies.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>

#include "core/clock.h"
#include "core/fd.h"
#include "core/interrupt.h"
#include "core/status.h"
#include "store/fields.h"

namespace memspan::transfer {

// A value.
struct Notification {
  std::string sender;  // the name of the endpoint
  std::string message;
};
inline constexpr std::size_t kMostMessageBytes = 256;

// Thread-safe.
class NotificationQueue {
 public:
  static Result<NotificationQueue> create() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      return Status::from_errno("making a notification queue");
    Fd receiving(ends[0]), sending(ends[1]);
    MEMSPAN_PASS_ASSIGN(auto ended, WakeEvent::create());
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof kBufferBytes);
    return NotificationQueue(std::move(receiving), std::move(sending), std::move(ended));
  }

  // For handing over.
  Result<Fd> sending_end() const { return duplicate(sending_.get(), "duplicating a descriptor"); }
  // Readable while there is a message.
  int descriptor() const { return receiving_.get(); }
  // The oldest; kTimeout when none came, kUnavailable after end().
  Result<Notification> receive(Deadline deadline) const {
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
  void end() const { ended_.ring(); }
  // For send_notification(); stays this object's.
  const Fd& own_sending_end() const { return sending_; }

 private:
  static constexpr std::size_t kMostNameBytes = 64;
  static constexpr std::size_t kMostFrameBytes = 4 + kMostNameBytes + 4 + kMostMessageBytes;
  // For room for several hundred messages; the system's own limit counts if it is less.
  static constexpr int kBufferBytes = 1 << 20;
  // How many strange frames are skipped whatever the deadline.
  static constexpr int kMostStrange = 1000;

  NotificationQueue(Fd receiving, Fd sending, WakeEvent ended)
      : receiving_(std::move(receiving)), sending_(std::move(sending)), ended_(std::move(ended)) {}
  Fd receiving_;
  Fd sending_;
  WakeEvent ended_;  // rung by end()
};

// Puts a message into a peer's notification queue. kTimeout: it is full at the moment (of some
// hundred messages); kPeerLost: no process reads it any more.
inline Status send_notification(const Fd& sending_end, const Notification& notification) {
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
