// SPDX-License-Identifier: Apache-2.0
// Wraps a link for local ends that may be device memory: those use a host buffer. The owner stages
// its own device memory, which supports only the atomics set and fetch.
// Thread-safe like any Link; sizes are in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/link.h"
#include "transport/local_end.h"

namespace memspan {

// `behind` must outlive it and tracks its outstanding operations.
class StagingLink final : public Link {
 public:
  explicit StagingLink(Link& behind) : behind_(behind) {}

  Status attach(const RemoteRegion& region) override { return behind_.attach(region); }
  Status put(OperationContext& context, const RemotePlace& to, const void* from,
             std::size_t bytes) override;
  Status put_nbi(OperationContext& context, const RemotePlace& to, const void* from,
                 std::size_t bytes) override;
  Status get(OperationContext& context, void* to, const RemotePlace& from,
             std::size_t bytes) override;
  Status get_nbi(OperationContext& context, void* to, const RemotePlace& from,
                 std::size_t bytes) override;
  Status put_signal(OperationContext& context, const RemotePlace& to, const void* from,
                    std::size_t bytes, const RemotePlace& signal, std::uint64_t value,
                    SignalOp op) override;
  Status move(OperationContext& context, MoveDirection direction,
              std::span<const MovePiece> pieces) override;
  Status atomic(OperationContext& context, const AtomicOp& op, const RemotePlace& at,
                std::uint64_t* fetched) override;
  Status fence(OperationContext& context) override { return behind_.fence(context); }
  std::uint64_t start_quiet(OperationContext& context) override {
    return behind_.start_quiet(context);
  }
  Status finish_quiet(OperationContext& context, std::uint64_t ticket) override {
    return behind_.finish_quiet(context, ticket);
  }
  Status send(const MessageTag& tag, std::span<const std::byte> bytes,
              const Deadline& deadline) override {
    return behind_.send(tag, bytes, deadline);
  }
  Status post(const MessageTag& tag, std::span<const std::byte> bytes) override {
    return behind_.post(tag, bytes);
  }
  LinkState state() const override { return behind_.state(); }

 private:
  Status put_staged(OperationContext& context, const RemotePlace& to, const std::byte* from,
                    std::size_t bytes);
  Status get_staged(OperationContext& context, std::byte* to, const RemotePlace& from,
                    std::size_t bytes);

  Link& behind_;
  LocalEnd local_;
};

}  // namespace memspan
