// SPDX-License-Identifier: Apache-2.0
#include "device/choice.h"

#include <fmt/format.h>

#include <string>

#include "core/environment.h"
#include "device/cuda/cuda_device.h"
#include "device/host/host_device.h"

namespace memspan {

Result<Device*> chosen_device() {
  const std::string word = environment_or("MEMSPAN_DEVICE", "host");
  if (word == "host") return &host_device();
  if (word == "cuda") {
    auto device = cuda::open_device();
    if (!device.is_ok()) return device.status().annotate("MEMSPAN_DEVICE=cuda");
    return *device;
  }
  return Status(Code::kInvalidArgument,
                fmt::format("MEMSPAN_DEVICE is \"{}\", allowed are host and cuda", word));
}

Device* other_device() {
  const Result<Device*> chosen = chosen_device();
  return chosen.is_ok() && !(*chosen)->is_host() ? *chosen : nullptr;
}

}  // namespace memspan
