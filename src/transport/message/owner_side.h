// SPDX-License-Identifier: Apache-2.0
// The owner's side of one connection. It checks a peer's requests, applies them in order to the
// regions of this process and answers. It refuses, counts and reports wrong ones.
#pragma once

#include "core/bytes.h"
#include "transport/link.h"
#include "transport/message/carrier.h"
#include "transport/message/frame_reader.h"
#include "transport/message/protocol.h"
#include "transport/message/region_table.h"

namespace memspan {

// Counts of all connections. Thread-safe.
struct OwnerCounters {
  std::atomic<std::uint64_t> puts{0};
  std::atomic<std::uint64_t> gets{0};
  std::atomic<std::uint64_t> atomics{0};
  std::atomic<std::uint64_t> messages{0};
  std::atomic<std::uint64_t> message_bytes{0};
  std::array<std::atomic<std::uint64_t>, kLastRefusal + 1> refused{};  // by Refusal
  std::atomic<std::uint64_t> broken{0};       // connections that ended for bad frames
  std::atomic<std::uint64_t> native_keys{0};  // given to peers
};

// Takes answers and messages of an owner side.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  // Sends an answer, in order; `payload` may change when it returns.
  virtual Status answer(const Frame& frame, std::span<const std::byte> payload) = 0;
  // A message for the handler.
  virtual void deliver(const MessageTag& tag, Buffer bytes) = 0;
  // Whether the handler has handled all messages. False: the sink calls the reader again when it
  // has.
  virtual bool is_delivered() { return true; }
};

// Shared by the owner sides of all connections.
struct OwnerServices {
  RegionTable regions;
  OwnerCounters counters;
  NativeAccess* native = nullptr;  // peers reach memory without this process; may be null
};

// One thread at a time. Gets requests and messages only.
class OwnerSide final : public FrameSink {
 public:
  OwnerSide(OwnerServices& services, AnswerSink& answers)
      : services_(services), answers_(answers) {}

  Status begin(const Frame& frame) override;
  std::byte* pin() override;
  void unpin() override { pinned_ = {}; }
  Status end(const Frame& frame) override;
  bool must_wait(FrameType type) override;

  // Counts it and reports it to the peer.
  Status refuse(const Frame& frame, const Denial& denial);
  // Whether something was applied since the last call.
  bool take_applied() { return std::exchange(has_applied_, false); }

 private:
  Status apply_get(const Frame& frame);
  Status copy_to_device(const Frame& frame);
  Status apply_atomic_frame(const Frame& frame);
  Status give_key(const Frame& frame);
  // Adds the tag of the request and the size of the payload.
  Status answer(const Frame& request, Frame frame, std::span<const std::byte> payload = {});

  OwnerServices& services_;
  AnswerSink& answers_;
  bool has_applied_ = false;
  bool put_was_refused_ = false;   // the last put: an atomic after it may depend on it
  bool is_put_to_device_ = false;  // its payload is received into text_
  Frame frame_;
  PinnedMemory pinned_;  // of a put, from pin() to unpin()
  Buffer text_;          // the payload of a message or of a put to device memory
};

}  // namespace memspan
