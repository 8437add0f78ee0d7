// SPDX-License-Identifier: Apache-2.0
// Chooses the device of this process's device memory. MEMSPAN_DEVICE is "host", the default, "cuda"
// or "cuda:N", the GPU with that number.
#pragma once

#include "core/status.h"
#include "device/memory.h"

namespace memspan::inline device {

// kInvalidArgument for another word; kNotSupported and kUnavailable name the reason why the device
// cannot be used. Thread-safe.
Result<Device*> chosen_device();
// The chosen device; null if it is the host or cannot be used. The processor does not copy the
// memory of a device that this returns.
Device* other_device();
// Whether MEMSPAN_DEVICE names something other than the host. Opens nothing.
bool wants_other_device();

}  // namespace memspan::inline device
