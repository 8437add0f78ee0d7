// SPDX-License-Identifier: Apache-2.0
// A link to a process of this node whose memory is mapped here, in a job where memory may be that
// of another device than the host: regions of the host, and of the device, and local ends of
// either.
//
// An end of the device is copied by the device, and the copy is done when the call returns. Of
// atomics on memory of the device only set and fetch of a word can be done from here, as copies of
// it; the others are kNotSupported.
// Thread-safe as any Link; sizes are bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/link.h"
#include "transport/local_end.h"

namespace memspan {

class DeviceLink final : public Link {
 public:
  DeviceLink() = default;

  // A region of the peer, by its number, and where it is mapped here. Before its first use.
  void add(const RemoteRegion& region, std::byte* mapped_at);

  Status attach(const RemoteRegion& region) override;  // kNotSupported: add() does it
  std::byte* direct(const RemotePlace& place) override;
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
  Status fence(OperationContext& context) override;
  std::uint64_t start_quiet(OperationContext& context) override;
  Status finish_quiet(OperationContext& context, std::uint64_t ticket) override;

 private:
  // Numbers of regions are below this.
  static constexpr std::size_t kMostRegions = 4;
  struct Mapped {
    std::byte* base = nullptr;
    std::uint64_t bytes = 0;
    bool is_device = false;
  };
  Result<Mapped> find(const RemotePlace& place, std::size_t bytes) const;

  std::array<Mapped, kMostRegions> mapped_;  // by number
  LocalEnd local_;
};

}  // namespace memspan
