// SPDX-License-Identifier: Apache-2.0
// The link to one peer in a job with device memory: either end of a copy may be host or device
// memory.
//
// Regions of the peer that are mapped here are copied by the processor, or by the device if an end
// is device memory; the copy is complete when the call returns. Without mapped memory, another link
// reaches the peer, a local end in device memory uses a host buffer, and the owner stages its own
// device memory. Device memory supports only the atomics set and fetch, as copies of the word; the
// others return kNotSupported.
//
// It carries no messages. Thread-safe like any Link; sizes are in bytes.
#pragma once

#include <array>

#include "device/memory.h"
#include "transport/link.h"

namespace memspan {

class DeviceLink final : public Link {
 public:
  // `behind` reaches the peer, tracks the outstanding operations, and must outlive this link. Null:
  // the peer's memory is mapped here.
  explicit DeviceLink(Link* behind) : behind_(behind) {}

  // Without `behind`: adds a region of the peer, mapped at `mapped_at`. Call it before the first
  // use.
  void add(const RemoteRegion& region, std::byte* mapped_at);

  Status move(OperationContext& context, MoveDirection direction,
              std::span<const MovePiece> pieces) override;
  Status put_signal(OperationContext& context, const RemotePlace& to, const void* from,
                    std::size_t bytes, const RemotePlace& signal, std::uint64_t value,
                    SignalOp op) override;
  Status atomic(OperationContext& context, const AtomicOp& op, const RemotePlace& at,
                std::uint64_t* fetched) override;

 private:
  // Region numbers are below this.
  static constexpr std::size_t kMostRegions = 4;
  struct Mapped {
    std::byte* base = nullptr;
    std::uint64_t bytes = 0;
  };
  // The address of a mapped place.
  Result<std::byte*> find(const RemotePlace& place, std::size_t bytes) const;
  // The first use opens the device. Null if there is no device. Then no memory is device memory.
  Device* device();
  bool is_device(const void* pointer);
  // The local end is device memory.
  Status move_staged(OperationContext& context, MoveDirection direction, const MovePiece& piece);
  Status move_mapped(MoveDirection direction, const MovePiece& piece);

  Link* const behind_;
  std::array<Mapped, kMostRegions> mapped_;  // by number
  std::atomic<Device*> device_{nullptr};
};

}  // namespace memspan
