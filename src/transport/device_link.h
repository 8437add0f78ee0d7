// SPDX-License-Identifier: Apache-2.0
// A link to a process of this node whose memory is mapped here, in a job with device memory.
// Regions and local ends may be host or device memory.
//
// If an end is device memory, the device copies; the copy is complete when the call returns. Device
// memory supports only the atomics set and fetch, as copies of the word; the others return
// kNotSupported.
// Thread-safe like any Link; sizes are in bytes.
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

  // Adds a region of the peer, mapped at `mapped_at`. Call it before the first use.
  void add(const RemoteRegion& region, std::byte* mapped_at);

  Status attach(const RemoteRegion& region) override;  // kNotSupported: use add()
  Status put(OperationContext& context, const RemotePlace& to, const void* from,
             std::size_t bytes) override;
  Status get(OperationContext& context, void* to, const RemotePlace& from,
             std::size_t bytes) override;
  Status put_signal(OperationContext& context, const RemotePlace& to, const void* from,
                    std::size_t bytes, const RemotePlace& signal, std::uint64_t value,
                    SignalOp op) override;
  Status atomic(OperationContext& context, const AtomicOp& op, const RemotePlace& at,
                std::uint64_t* fetched) override;
  Status fence(OperationContext& context) override;
  std::uint64_t start_quiet(OperationContext& context) override;
  Status finish_quiet(OperationContext& context, std::uint64_t ticket) override;

 private:
  // Region numbers are below this.
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
