// SPDX-License-Identifier: Apache-2.0
// The owner's side of one connection. It checks a peer's requests, applies them in order to the
// regions of this process and answers. It refuses, counts and reports wrong ones.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "core/bytes.h"
#include "device/host/guarded_copy.h"
#include "transport/link.h"
#include "transport/message/carrier.h"
#include "transport/message/frame_reader.h"
#include "transport/message/protocol.h"
#include "transport/message/region_table.h"

namespace memspan::inline transport {

// Counts of all connections. Thread-safe.
struct OwnerCounters {
  std::atomic<std::uint64_t> puts{0};
  std::atomic<std::uint64_t> gets{0};
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

  Status begin(const Frame& frame) override {
    frame_ = frame;
    if (!is_request(frame.type))
      return {Code::kInvalidArgument,
              fmt::format("type {} among requests", static_cast<int>(frame.type))};
    if (frame.type == FrameType::kMessage) text_ = Buffer(frame.payload);
    if (frame.type != FrameType::kPut) return Status::ok();
    const PinnedMemory memory = services_.regions.pin(frame.region, frame.offset, frame.payload);
    std::optional<Denial> denial = memory.denial;
    is_put_to_device_ = memory.device != nullptr;
    if (is_put_to_device_)
      text_ = Buffer(frame.payload);
    else if (!denial)
      denial = check_memory(memory.at, frame.payload, MemoryAccess::kWrite);
    put_was_refused_ = denial.has_value();
    return put_was_refused_ ? refuse(frame, *denial) : Status::ok();
  }

  // If the region is retracted while a payload arrives, the rest is discarded.
  std::byte* pin() override {
    if (frame_.type != FrameType::kPut) return text_.data();
    if (put_was_refused_) return nullptr;
    if (is_put_to_device_) return text_.data();
    pinned_ = services_.regions.pin(frame_.region, frame_.offset, frame_.payload);
    return pinned_.at;
  }

  void unpin() override { pinned_ = {}; }
  Status end(const Frame& frame) override {
    switch (frame.type) {
      case FrameType::kPut:
        if (is_put_to_device_ && !put_was_refused_) MEMSPAN_PASS(copy_to_device(frame));
        count(services_.counters.puts);
        has_applied_ = true;
        return Status::ok();
      case FrameType::kGet:
        return apply_get(frame);
      case FrameType::kAtomic:
        return apply_atomic_frame(frame);
      case FrameType::kFlush:
        return answer(frame, {.type = FrameType::kFlushed});
      case FrameType::kKey:
        return give_key(frame);
      default:
        count(services_.counters.messages);
        services_.counters.message_bytes.fetch_add(frame.payload, std::memory_order_relaxed);
        has_applied_ = true;
        answers_.deliver({frame.tag, frame.operand, frame.compare}, std::move(text_));
        return Status::ok();
    }
  }

  // An answer says that all earlier messages were handled.
  bool must_wait(FrameType type) override {
    return is_request(type) && type != FrameType::kPut && type != FrameType::kMessage &&
           !answers_.is_delivered();
  }

  // Counts it and reports it to the peer.
  Status refuse(const Frame& frame, const Denial& denial) {
    count(services_.counters.refused[static_cast<std::size_t>(denial.refusal)]);
    const bool is_answer = frame.type == FrameType::kGet || frame.type == FrameType::kKey ||
                           (frame.flags & kWantsAnswer) != 0;
    const std::string_view why = std::string_view(denial.why).substr(0, kMostText);
    return answer(frame,
                  {.type = FrameType::kRefused,
                   .kind = static_cast<std::uint8_t>(denial.refusal),
                   .flags = is_answer ? kWantsAnswer : std::uint8_t{0}},
                  std::as_bytes(std::span(why)));
  }

  // Whether something was applied since the last call.
  bool take_applied() { return std::exchange(has_applied_, false); }

 private:
  static void count(std::atomic<std::uint64_t>& counter) {
    counter.fetch_add(1, std::memory_order_relaxed);
  }

  // The file may have shrunk, or the program may have unmapped the memory.
  static std::optional<Denial> check_memory(std::byte* at, std::uint64_t bytes,
                                            MemoryAccess access) {
    if (bytes == 0 || !find_fault(at, bytes, access)) return std::nullopt;
    return Denial{Refusal::kMemory,
                  fmt::format("there is no memory any more at {} of the owner", fmt::ptr(at))};
  }

  Status apply_get(const Frame& frame) {
    if (frame.length > kMostPayload)
      return refuse(frame, {Refusal::kBounds, fmt::format("a get of {} bytes; at most {} at once",
                                                          frame.length, kMostPayload)});
    const PinnedMemory memory = services_.regions.pin(frame.region, frame.offset, frame.length);
    if (memory.denial) return refuse(frame, *memory.denial);
    const std::byte* bytes = memory.at;
    Buffer staged;
    std::array<std::byte, kMostWords> words;
    if (memory.device != nullptr) {
      staged = Buffer(frame.length);
      const Status copied = memory.device->copy(staged.data(), memory.at, frame.length);
      if (!copied.is_ok()) return refuse(frame, {Refusal::kMemory, copied.message()});
      bytes = staged.data();
    } else if (const auto denial = check_memory(memory.at, frame.length, MemoryAccess::kRead)) {
      return refuse(frame, *denial);
    } else if (frame.length <= words.size()) {
      copy_words<Words::kLoaded>(words.data(), memory.at, frame.length);
      bytes = words.data();
    }
    count(services_.counters.gets);
    return answer(frame, {.type = FrameType::kData}, {bytes, frame.length});
  }

  // Writes nothing if the region was retracted while the payload arrived.
  Status copy_to_device(const Frame& frame) {
    const PinnedMemory memory = services_.regions.pin(frame.region, frame.offset, frame.payload);
    if (memory.denial) return Status::ok();
    const Status copied = memory.device->copy(memory.at, text_.data(), text_.size());
    put_was_refused_ = !copied.is_ok();
    return put_was_refused_ ? refuse(frame, {Refusal::kMemory, copied.message()}) : Status::ok();
  }

  Status apply_atomic_frame(const Frame& frame) {
    // Its put's refusal is already reported.
    if ((frame.flags & kAfterPut) != 0 && put_was_refused_) return Status::ok();
    const auto kind = static_cast<AtomicKind>(frame.kind);
    if (kind > AtomicKind::kXor || (frame.width != 4 && frame.width != 8))
      return refuse(frame,
                    {Refusal::kWord, fmt::format("atomic {} of {} bytes; allowed are 4 and 8",
                                                 frame.kind, frame.width)});
    const PinnedMemory memory = services_.regions.pin(frame.region, frame.offset, frame.width);
    if (memory.denial) return refuse(frame, *memory.denial);
    if (memory.device != nullptr)
      return refuse(frame,
                    {Refusal::kWord, "an atomic on memory of a device, which messages cannot"});
    if (reinterpret_cast<std::uintptr_t>(memory.at) % frame.width != 0)
      return refuse(frame, {Refusal::kWord, fmt::format("an atomic of {} bytes at offset {}, which "
                                                        "is not aligned",
                                                        frame.width, frame.offset)});
    const std::uint64_t before =
        apply_atomic(memory.at, {kind, frame.width, frame.operand, frame.compare});
    has_applied_ = has_applied_ || kind != AtomicKind::kFetch;
    if ((frame.flags & kWantsAnswer) == 0) return Status::ok();
    return answer(frame, {.type = FrameType::kFetched, .operand = before});
  }

  // Only for whole windows, so that peers cannot make this process register memory repeatedly.
  Status give_key(const Frame& frame) {
    const PinnedMemory memory = services_.regions.pin(frame.region, frame.offset, frame.operand);
    if (memory.denial) return refuse(frame, *memory.denial);
    std::string key;
    const bool is_window =
        frame.offset % kNativeWindow == 0 && frame.operand == std::min(kNativeWindow, memory.rest);
    if (memory.lasts && is_window && services_.native != nullptr) {
      auto made = services_.native->key(memory.at, frame.operand);
      if (made.is_ok() && made->size() <= kMostKey) key = std::move(made).value();
      if (!key.empty()) count(services_.counters.native_keys);
    }
    return answer(frame, {.type = FrameType::kKeyed}, std::as_bytes(std::span(key)));
  }

  // Adds the tag of the request and the size of the payload.
  Status answer(const Frame& request, Frame frame, std::span<const std::byte> payload = {}) {
    frame.tag = request.tag;
    frame.payload = static_cast<std::uint32_t>(payload.size());
    return answers_.answer(frame, payload);
  }

  OwnerServices& services_;
  AnswerSink& answers_;
  bool has_applied_ = false;
  bool put_was_refused_ = false;   // the last put: an atomic after it may depend on it
  bool is_put_to_device_ = false;  // its payload is received into text_
  Frame frame_;
  PinnedMemory pinned_;  // of a put, from pin() to unpin()
  Buffer text_;          // the payload of a message or of a put to device memory
};

}  // namespace memspan::inline transport
