// SPDX-License-Identifier: Apache-2.0
// A connection that a peer made. Any thread that makes progress serves its requests.
#pragma once

#include <atomic>
#include <memory>

#include "transport/message/connection.h"
#include "transport/message/heartbeat.h"
#include "transport/message/message_core.h"
#include "transport/message/owner_side.h"

namespace memspan {

// Thread-safe. Progress keeps it alive.
class Incoming final : public PollClient, public AnswerSink {
 public:
  Incoming(MessageCore& core, OwnerServices& services, std::unique_ptr<ByteStream> stream);

  // Starts to watch it.
  Status start(const std::shared_ptr<Incoming>& self);
  // Ends it; the handler is not called.
  void close(bool says_goodbye);
  bool is_over() const { return is_over_.load(std::memory_order_acquire); }
  // -1 before the peer has greeted.
  int peer() const { return peer_.load(std::memory_order_acquire); }

  void on_ready(std::uint32_t events) override;
  // Injected faults act on events: with them no thread polls it.
  bool can_be_asked() const override {
    return core_.options.faults == nullptr || !core_.options.faults->is_any();
  }
  Status answer(const Frame& frame, std::span<const std::byte> payload) override;

 private:
  bool is_held_back(std::uint32_t events);
  void serve();
  Status receive_some();
  Status look_for_silence();
  void end(const Status& why);
  void watch();

  MessageCore& core_;
  OwnerSide side_;
  Connection connection_;
  Progress::Id watched_ = 0;
  const Clock::time_point greets_until_;
  std::atomic<bool> is_over_{false};
  std::atomic<bool> is_closed_{false};  // by this process
  std::atomic<int> peer_{-1};
  Clock::time_point held_until_{};  // a fault; for the receiver
  Heartbeat heartbeat_;             // for the receiver
};

}  // namespace memspan
