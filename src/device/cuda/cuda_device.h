// SPDX-License-Identifier: Apache-2.0
// A GPU as a device of memspan.
#pragma once

#include "core/status.h"
#include "device/memory.h"

namespace memspan::cuda {

// The one that device() of driver.h names. Its failures, and kNotSupported when the GPU lacks
// something that is needed.
Result<memspan::Device*> open_device();

}  // namespace memspan::cuda
