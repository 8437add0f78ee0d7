// SPDX-License-Identifier: Apache-2.0
// Registered memory of a device that is not the host. It is an allocation in the registration
// table, its number has kOfDevice, and peers of this host open it by what its owner publishes. Only
// the device's driver can share it, whatever allocated it:
//
//   Device::share_pointer() ─► device_exchange.h, by the brokers ─► Device::open_pointer()
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "core/status.h"
#include "device/memory.h"
#include "fabric/member.h"
#include "fabric/transfer/device_exchange.h"
#include "fabric/transfer/endpoint_record.h"
#include "fabric/transfer/registrations.h"

namespace memspan::transfer {

inline constexpr std::uint32_t kOfDevice = std::uint32_t{1} << 31;

// The owner's side. One thread at a time.
class DeviceRegistrations {
 public:
  // The arguments outlive it. `device` null: the process has no such device, and nothing is added.
  DeviceRegistrations(Device* device, Member& member, const EndpointRecord& record,
                      Registrations& registrations)
      : device_(device), member_(member), record_(record), registrations_(registrations) {}
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
  // Takes it back once. False: the program registered nothing that begins there.
  bool remove(std::uint64_t base);
  // Memory that the endpoint has allocated: the program cannot take it back.
  Status add_allocation(std::uint64_t base, std::uint64_t bytes);
  void remove_allocation(std::uint64_t base) { erase(by_base_.find(base)); }

 private:
  struct Registration {
    PublishedPointer published;
    std::uint64_t bytes = 0;
    std::uint32_t slot = 0;
    std::uint64_t by_program = 0;  // how often
    bool is_allocation = false;
  };
  using ByBase = std::map<std::uint64_t, Registration>;
  // As add(), but does not count it as registered by the program.
  Result<Registration*> find_or_make(std::uint64_t base, std::uint64_t bytes);
  Status check_overlaps(std::uint64_t base, std::uint64_t bytes) const;
  Result<PublishedPointer> publish(std::uint64_t base, std::uint64_t bytes, std::uint32_t number);
  void erase(ByBase::iterator which);

  Device* const device_;
  Member& member_;
  const EndpointRecord& record_;
  Registrations& registrations_;
  ByBase by_base_;
  std::uint32_t last_number_ = kOfDevice;
};

// Opens such a registration here. `device` null: this process has no device, and it is refused.
Result<OpenedPointer> open_registration(Device* device, const std::string& name,
                                        const FetchPublished& fetch);

}  // namespace memspan::transfer
