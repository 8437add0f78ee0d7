// SPDX-License-Identifier: Apache-2.0
// The link to one peer by messages. Operations are frames, except large puts and gets if the
// build and the carrier have a better way (native_path.h).
#pragma once

#include <fmt/format.h>

#include "transport/link.h"
#include "transport/message/requester.h"

#ifdef MEMSPAN_NATIVE_RMA
#include "transport/message/native_path.h"
#endif

namespace memspan::inline transport {

#ifndef MEMSPAN_NATIVE_RMA
// A build without one-sided access.
class NativePath {
 public:
  NativePath(Requester&, NativeAccess*) {}
  Result<std::size_t> move(auto&&...) { return std::size_t{0}; }
};
#endif

// kInvalidArgument: it is too long. The bytes are not copied.
inline Result<OutFrame> message_frame(const MessageTag& tag, std::span<const std::byte> bytes) {
  if (bytes.size() > kMostMessage)
    return Status(
        Code::kInvalidArgument,
        fmt::format("a message of {} bytes; at most {} are allowed", bytes.size(), kMostMessage));
  return OutFrame{{.type = FrameType::kMessage,
                   .payload = static_cast<std::uint32_t>(bytes.size()),
                   .tag = tag.kind,
                   .operand = tag.id,
                   .compare = tag.sequence},
                  bytes.data()};
}

// Collects frames of puts and posts many at a time.
class PutBatch {
 public:
  PutBatch(Requester& requester, const OperationContext& context)
      : requester_(requester), context_(context), deadline_(context.deadline()) {}

  // The bytes from `done` on.
  Status add(const RemotePlace& to, const std::byte* from, std::size_t done, std::size_t bytes) {
    while (done < bytes) {
      const auto piece =
          static_cast<std::uint32_t>(std::min<std::size_t>(bytes - done, kMostPayload));
      MEMSPAN_PASS(add({{.type = FrameType::kPut,
                         .payload = piece,
                         .tag = context_.id(),
                         .region = to.region.id,
                         .offset = to.offset + done},
                        from + done}));
      done += piece;
    }
    return Status::ok();
  }

  Status add(const OutFrame& frame) {
    if (count_ == frames_.size()) MEMSPAN_PASS(post());
    frames_[count_++] = frame;
    return Status::ok();
  }

  Status post() {
    const std::size_t count = std::exchange(count_, 0);
    if (count == 0) return Status::ok();
    const Turn turn(requester_.engine);
    return requester_.post({frames_.data(), count}, SendMode::kWait, deadline_);
  }

 private:
  Requester& requester_;
  const OperationContext& context_;
  const Deadline deadline_;
  std::array<OutFrame, 16> frames_;
  std::size_t count_ = 0;
};

class MessageLink final : public Link {
 public:
  MessageLink(MessageCore& core, const PeerAddress& address)
      : requester_(core, address), native_(requester_, core.services.native) {}

  Status move(OperationContext& context, MoveDirection direction,
              std::span<const MovePiece> pieces) override {
    const bool is_put = direction == MoveDirection::kPut;
    for (const MovePiece& piece : pieces)
      MEMSPAN_PASS(check(is_put ? "a put" : "a get", {*piece.region, piece.offset}, piece.bytes));
    return is_put ? put_pieces(context, pieces) : get_pieces(context, pieces);
  }

  Status get_nbi(OperationContext& context, void* to, const RemotePlace& from,
                 std::size_t bytes) override {
    MEMSPAN_PASS(check("a get", from, bytes));
    context.use(*this);
    auto* const local = static_cast<std::byte*>(to);
    MEMSPAN_PASS_ASSIGN(const std::size_t done,
                        native_.move(context, MoveDirection::kGet, local, from, bytes));
    const Turn turn(requester_.engine);
    return ask(context, local + done, {from.region, from.offset + done}, bytes - done, nullptr,
               context.deadline())
        .status();
  }

  Status put_signal(OperationContext& context, const RemotePlace& to, const void* from,
                    std::size_t bytes, const RemotePlace& signal, std::uint64_t value,
                    SignalOp op) override {
    MEMSPAN_PASS(check_word(signal, sizeof value));
    if (bytes != 0) MEMSPAN_PASS(check("a put", to, bytes));
    context.use(*this);
    const AtomicKind kind = op == SignalOp::kSet ? AtomicKind::kSet : AtomicKind::kAdd;
    auto* const local = static_cast<std::byte*>(const_cast<void*>(from));
    MEMSPAN_PASS_ASSIGN(const std::size_t done,
                        native_.move(context, MoveDirection::kPut, local, to, bytes));
    PutBatch batch(requester_, context);
    MEMSPAN_PASS(batch.add(to, local, done, bytes));
    MEMSPAN_PASS(batch.add({atomic_frame(context, {kind, sizeof value, value}, signal,
                                         done < bytes ? kAfterPut : std::uint8_t{0}),
                            nullptr}));
    return batch.post();
  }

  Status atomic(OperationContext& context, const AtomicOp& op, const RemotePlace& at,
                std::uint64_t* fetched) override {
    MEMSPAN_PASS(check_word(at, op.width));
    const Deadline deadline = context.deadline();
    if (fetched == nullptr) context.use(*this);
    const Turn turn(requester_.engine);
    if (fetched == nullptr) {
      const OutFrame frame{atomic_frame(context, op, at, 0), nullptr};
      return requester_.post({&frame, 1}, SendMode::kWait, deadline);
    }
    const auto before = requester_.call(
        {.frame = atomic_frame(context, op, at, kWantsAnswer), .context = context.id()}, deadline);
    if (before.is_ok()) *fetched = *before;
    return before.status();
  }

  std::uint64_t start_quiet(OperationContext& context) override {
    const Turn turn(requester_.engine);
    const auto asked = requester_.request_quiet(context.id(), context.deadline());
    if (asked.is_ok()) return *asked;
    requester_.note_failure(context.id(), asked.status());
    return 0;
  }

  Status finish_quiet(OperationContext& context, std::uint64_t ticket) override {
    const Turn turn(requester_.engine);
    // 0: the request failed, and the reason is noted.
    if (ticket != 0) MEMSPAN_PASS(requester_.wait(ticket, context.deadline(), nullptr));
    return requester_.take_failure(context.id());
  }

  Status send(const MessageTag& tag, std::span<const std::byte> bytes,
              const Deadline& deadline) override {
    return send(tag, bytes, SendMode::kWait, deadline);
  }

  Status post(const MessageTag& tag, std::span<const std::byte> bytes) override {
    return send(tag, bytes, SendMode::kControl, Deadline::never());
  }

  LinkState state() const override { return requester_.state(); }

 private:
  // Finds mistakes before anything is sent; the owner also checks.
  static Status check(const char* what, const RemotePlace& place, std::size_t bytes) {
    if (place.region.contains(place.offset, bytes)) return Status::ok();
    return {Code::kInvalidArgument,
            fmt::format("{} of {} bytes at offset {} leaves the region of {} bytes", what, bytes,
                        place.offset, place.region.bytes)};
  }

  static Status check_word(const RemotePlace& place, std::uint8_t width) {
    if ((width != 4 && width != 8) || place.offset % width != 0)
      return {
          Code::kInvalidArgument,
          fmt::format("an atomic of {} bytes at offset {}; allowed are aligned words of 4 and 8 "
                      "bytes",
                      width, place.offset)};
    return check("an atomic", place, width);
  }

  static Frame atomic_frame(const OperationContext& context, const AtomicOp& op,
                            const RemotePlace& at, std::uint8_t flags) {
    return {.type = FrameType::kAtomic,
            .kind = static_cast<std::uint8_t>(op.kind),
            .width = op.width,
            .flags = flags,
            .tag = context.id(),
            .region = at.region.id,
            .offset = at.offset,
            .operand = op.operand,
            .compare = op.compare};
  }

  // Returns how many bytes, from the first one, were moved without frames. Several pieces are moved
  // by frames.
  Result<std::size_t> move_natively(const OperationContext& context, MoveDirection direction,
                                    std::span<const MovePiece> pieces) {
    if (pieces.size() != 1) return std::size_t{0};
    const MovePiece& only = pieces.front();
    return native_.move(context, direction, only.local, RemotePlace{*only.region, only.offset},
                        only.bytes);
  }

  Status put_pieces(OperationContext& context, std::span<const MovePiece> pieces) {
    context.use(*this);
    MEMSPAN_PASS_ASSIGN(const std::size_t done,
                        move_natively(context, MoveDirection::kPut, pieces));
    PutBatch batch(requester_, context);
    for (const MovePiece& piece : pieces)
      MEMSPAN_PASS(batch.add({*piece.region, piece.offset}, piece.local, done, piece.bytes));
    return batch.post();
  }

  Status get_pieces(OperationContext& context, std::span<const MovePiece> pieces) {
    MEMSPAN_PASS_ASSIGN(const std::size_t done,
                        move_natively(context, MoveDirection::kGet, pieces));
    if (done != 0 && done == pieces.front().bytes) return Status::ok();
    const Deadline deadline = context.deadline();
    Completion completion;
    std::uint64_t last = 0;
    for (const MovePiece& piece : pieces) {
      const Turn turn(requester_.engine);
      MEMSPAN_PASS_ASSIGN(const std::uint64_t asked,
                          ask(context, piece.local + done, {*piece.region, piece.offset + done},
                              piece.bytes - done, &completion, deadline));
      last = std::max(last, asked);
    }
    const Turn turn(requester_.engine);
    MEMSPAN_PASS(requester_.wait(last, deadline, &completion));
    return std::move(completion.status);
  }

  Result<std::uint64_t> ask(OperationContext& context, void* to, const RemotePlace& from,
                            std::size_t bytes, Completion* completion, const Deadline& deadline)
      MEMSPAN_REQUIRES(requester_.engine.turn) {
    std::uint64_t last = 0;
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t piece = std::min<std::size_t>(bytes - done, kGetPiece);
      const auto asked = requester_.request({{.type = FrameType::kGet,
                                              .region = from.region.id,
                                              .offset = from.offset + done,
                                              .length = piece},
                                             static_cast<std::byte*>(to) + done,
                                             context.id(),
                                             completion},
                                            deadline);
      if (!asked.is_ok()) {
        // Earlier pieces would write to memory and a completion of the caller.
        if (completion != nullptr) requester_.abandon(completion);
        return asked.status();
      }
      last = *asked;
      done += piece;
    }
    return last;
  }

  Status send(const MessageTag& tag, std::span<const std::byte> bytes, SendMode mode,
              const Deadline& deadline) {
    MEMSPAN_TRY_ASSIGN(const OutFrame message, message_frame(tag, bytes), requester_.name());
    const Turn turn(requester_.engine);
    return requester_.post({&message, 1}, mode, deadline);
  }

  Requester requester_;
  NativePath native_;
};

}  // namespace memspan::inline transport
