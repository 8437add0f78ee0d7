// SPDX-License-Identifier: Apache-2.0
// A GPU as a device of memspan.
#pragma once

#include "core/status.h"
#include "device/memory.h"

namespace memspan::cuda {

// Opens the device that device() of driver.h chooses. Fails as device() does; kNotSupported if the
// GPU lacks a required feature.
Result<memspan::Device*> open_device();

}  // namespace memspan::cuda
