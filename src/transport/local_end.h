// SPDX-License-Identifier: Apache-2.0
// Finds out whether the local end of a copy is device memory, in a job that has a device.
#pragma once

#include <atomic>

#include "core/status.h"
#include "device/choice.h"
#include "device/memory.h"
#include "transport/link.h"

namespace memspan {

// Thread-safe. The first use opens the device.
class LocalEnd {
 public:
  // Null if there is no device. Then no memory is device memory.
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

// An atomic on a word in device memory, which `link` reaches at `at`. Set is a put: it may still be
// in flight on return, and gives 0 as the previous value. Fetch is a get. Other kinds return
// kNotSupported.
Status atomic_by_copies(Link& link, OperationContext& context, const AtomicOp& op,
                        const RemotePlace& at, std::uint64_t* fetched);
// The error for the other kinds.
Status no_device_atomic(const AtomicOp& op, const RemotePlace& at);

}  // namespace memspan
