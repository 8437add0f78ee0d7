// SPDX-License-Identifier: Apache-2.0
// Short messages to an endpoint: a pair of sockets whose sending end every peer gets. The kernel
// keeps the messages whole and in order, even if a sender dies.
#pragma once

#include <cstddef>
#include <string>

#include "core/clock.h"
#include "core/fd.h"
#include "core/status.h"

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
  static Result<NotificationQueue> create();

  // For handing over.
  Result<Fd> sending_end() const {
    Fd copy = duplicate(sending_.get());
    if (!copy.is_valid()) return Status::from_errno("duplicating a descriptor");
    return copy;
  }
  // Readable while there is a message.
  int descriptor() const { return receiving_.get(); }
  // The oldest; kTimeout when none came, kUnavailable after end().
  Result<Notification> receive(Deadline deadline) const;
  void end() const { ended_.ring(); }
  // For send_notification(); stays this object's.
  const Fd& own_sending_end() const { return sending_; }

 private:
  NotificationQueue(Fd receiving, Fd sending, WakeEvent ended)
      : receiving_(std::move(receiving)), sending_(std::move(sending)), ended_(std::move(ended)) {}
  Fd receiving_;
  Fd sending_;
  WakeEvent ended_;  // rung by end()
};

// Puts a message into a peer's notification queue. kTimeout: it is full at the moment (of some
// hundred messages); kPeerLost: no process reads it any more.
Status send_notification(const Fd& sending_end, const Notification& notification);

}  // namespace memspan::transfer
