// SPDX-License-Identifier: Apache-2.0
// What a local end of a copy is memory of, in a job with another device than the host.
#pragma once

#include <atomic>

#include "core/status.h"
#include "device/choice.h"
#include "device/memory.h"
#include "transport/link.h"

namespace memspan {

// Thread-safe. The device is opened when it is first asked for.
class LocalEnd {
 public:
  // Null where there is no such device: then no memory is its own.
  Device* device() {
    Device* known = device_.load(std::memory_order_acquire);
    if (known == nullptr && (known = other_device()) != nullptr)
      device_.store(known, std::memory_order_release);
    return known;
  }
  bool is_device(const void* pointer) {
    Device* const known = device();
    return known != nullptr && known->owns(pointer);
  }

 private:
  std::atomic<Device*> device_{nullptr};
};

// An atomic on a word in memory of a device, by `link`, which reaches it at `at`: set is a put,
// which may be on its way when this returns and gives 0 for the value before, and fetch a get.
// kNotSupported says so of the others.
Status atomic_by_copies(Link& link, OperationContext& context, const AtomicOp& op,
                        const RemotePlace& at, std::uint64_t* fetched);
// Why the others are not done.
Status no_device_atomic(const AtomicOp& op, const RemotePlace& at);

}  // namespace memspan
