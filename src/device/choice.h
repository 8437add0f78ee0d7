// SPDX-License-Identifier: Apache-2.0
// Which device this process's device memory is of: MEMSPAN_DEVICE says "host", which it is without
// the variable, or "cuda".
#pragma once

#include "core/status.h"
#include "device/memory.h"

namespace memspan {

// kInvalidArgument for another word; kNotSupported and kUnavailable say why there is no such device
// here. Thread-safe.
Result<Device*> chosen_device();
// The same, but null where that is the host or there is none: whoever got it has memory that the
// processor does not copy.
Device* other_device();
// Whether MEMSPAN_DEVICE names something else than the host. Opens nothing.
bool wants_other_device();

}  // namespace memspan
