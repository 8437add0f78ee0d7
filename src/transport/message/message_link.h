// SPDX-License-Identifier: Apache-2.0
// The link to one peer by messages. Operations are frames, except large puts and gets if the
// build and the carrier have a better way (native_path.h).
#pragma once

#include "transport/link.h"
#include "transport/message/requester.h"
#ifdef MEMSPAN_NATIVE_RMA
#include "transport/message/native_path.h"
#endif

namespace memspan {

#ifndef MEMSPAN_NATIVE_RMA
// A build without one-sided access.
class NativePath {
 public:
  NativePath(Requester&, NativeAccess*) {}
  Result<std::size_t> move(auto&&...) { return std::size_t{0}; }
};
#endif

// kInvalidArgument: it is too long. The bytes are not copied.
Result<OutFrame> message_frame(const MessageTag& tag, std::span<const std::byte> bytes);

class MessageLink final : public Link {
 public:
  MessageLink(MessageCore& core, const PeerAddress& address)
      : requester_(core, address), native_(requester_, core.services.native) {}

  Status get_nbi(OperationContext& context, void* to, const RemotePlace& from,
                 std::size_t bytes) override;
  Status put_signal(OperationContext& context, const RemotePlace& to, const void* from,
                    std::size_t bytes, const RemotePlace& signal, std::uint64_t value,
                    SignalOp op) override;
  Status move(OperationContext& context, MoveDirection direction,
              std::span<const MovePiece> pieces) override;
  Status atomic(OperationContext& context, const AtomicOp& op, const RemotePlace& at,
                std::uint64_t* fetched) override;
  std::uint64_t start_quiet(OperationContext& context) override;
  Status finish_quiet(OperationContext& context, std::uint64_t ticket) override;
  Status send(const MessageTag& tag, std::span<const std::byte> bytes,
              const Deadline& deadline) override {
    return send(tag, bytes, SendMode::kWait, deadline);
  }
  Status post(const MessageTag& tag, std::span<const std::byte> bytes) override {
    return send(tag, bytes, SendMode::kControl, Deadline::never());
  }
  LinkState state() const override { return requester_.state(); }

 private:
  Status send(const MessageTag& tag, std::span<const std::byte> bytes, SendMode mode,
              const Deadline& deadline);
  Result<std::uint64_t> ask(OperationContext& context, void* to, const RemotePlace& from,
                            std::size_t bytes, Completion* completion, const Deadline& deadline)
      MEMSPAN_REQUIRES(requester_.engine.turn);
  Status put_pieces(OperationContext& context, std::span<const MovePiece> pieces);
  Status get_pieces(OperationContext& context, std::span<const MovePiece> pieces);

  Requester requester_;
  NativePath native_;
};

}  // namespace memspan
