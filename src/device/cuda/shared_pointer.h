// SPDX-License-Identifier: Apache-2.0
// Memory that a program has allocated itself (cudaMalloc), shared with other processes of this host
// by the driver's handles.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"
#include "device/cuda/driver.h"

namespace memspan::cuda {

// As those of memspan::Device. A process cannot open what it has shared itself.
Result<std::string> share_pointer(const Device& device, DevicePtr pointer, std::size_t bytes);
Result<std::shared_ptr<std::byte>> open_pointer(const Device& device, std::string_view shared);

}  // namespace memspan::cuda
