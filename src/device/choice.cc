// SPDX-License-Identifier: Apache-2.0
#include "device/choice.h"

#include <fmt/format.h>

#include "core/environment.h"
#include "device/cuda/cuda_device.h"
#include "device/host/host_device.h"

namespace memspan {

namespace {

constexpr const char* kHost = "host";

std::string chosen_word() {
  return environment_or("MEMSPAN_DEVICE", kHost);
}

}  // namespace

Result<Device*> chosen_device() {
  const std::string word = chosen_word();
  if (word == kHost) return &host_device();
  if (word == "cuda" || word.starts_with("cuda:")) {
    MEMSPAN_TRY_ASSIGN(auto device, cuda::open_device(), "MEMSPAN_DEVICE=cuda");
    return device;
  }
  return Status(Code::kInvalidArgument,
                fmt::format("MEMSPAN_DEVICE is \"{}\", allowed are host, cuda and cuda:N", word));
}

Device* other_device() {
  const Result<Device*> chosen = chosen_device();
  return chosen.is_ok() && !(*chosen)->is_host() ? *chosen : nullptr;
}

bool wants_other_device() {
  return chosen_word() != kHost;
}

}  // namespace memspan
