// SPDX-License-Identifier: Apache-2.0
// Registered memory of a device that is not the host: an allocation of the registration table, by a
// number with kOfDevice, that peers of this host open by what its owner publishes for it. A program
// allocated it itself, and nobody but the device's driver can share it:
//
//   Device::share_pointer() ─► a memfd with that text ─► the brokers ─► Device::open_pointer()
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "core/fd.h"
#include "core/status.h"
#include "device/memory.h"
#include "fabric/member.h"
#include "fabric/transfer/endpoint_record.h"
#include "fabric/transfer/registrations.h"

namespace memspan::transfer {

inline constexpr std::uint32_t kOfDevice = std::uint32_t{1} << 31;

// The owner's side. One thread at a time.
class DeviceRegistrations {
 public:
  // What it is given outlives it. `device` null: there is none, and nothing is ever added.
  DeviceRegistrations(Device* device, Member& member, const EndpointRecord& record,
                      Registrations& registrations)
      : device_(device), member_(member), record_(record), registrations_(registrations) {}
  ~DeviceRegistrations();
  DeviceRegistrations(const DeviceRegistrations&) = delete;
  DeviceRegistrations& operator=(const DeviceRegistrations&) = delete;

  bool concerns(std::uint64_t base) const {
    return device_ != nullptr && device_->owns(reinterpret_cast<const void*>(base));
  }
  // The same range again is counted. kInvalidArgument: it overlaps another one; kNotSupported: the
  // driver does not share this memory.
  Status add(std::uint64_t base, std::uint64_t bytes);
  // All or none; they are not joined where they touch.
  Status add_all(std::span<const Range> ranges);
  // False: none begins there.
  bool remove(std::uint64_t base);

 private:
  struct Registration {
    std::uint64_t bytes = 0;
    std::uint32_t number = 0;
    std::uint32_t slot = 0;
    std::uint64_t count = 1;
  };
  Status publish(const Registration& made, std::uint64_t base);

  Device* const device_;
  Member& member_;
  const EndpointRecord& record_;
  Registrations& registrations_;
  std::map<std::uint64_t, Registration> by_base_;
  std::uint32_t last_number_ = kOfDevice;
};

// What the descriptor of such a registration gives: the memory, opened here.
Result<std::shared_ptr<std::byte>> open_shared(Device* device, const Fd& descriptor);

}  // namespace memspan::transfer
