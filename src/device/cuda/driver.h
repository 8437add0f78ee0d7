// SPDX-License-Identifier: Apache-2.0
// The CUDA driver (libcuda.so.1), loaded at the first request for a CUDA device. A process without
// such a request never opens it.
#pragma once

#include <utility>

#include "core/status.h"
#include "device/cuda/driver_types.h"

namespace memspan::cuda {

// The functions of the driver, which is initialised and has a device. The first call loads the
// driver for good; later calls return the same result. kNotSupported: the driver is missing or
// lacks a function that we need. kUnavailable: it finds no device or cannot start; the message is
// the driver's. Thread-safe.
Result<const Functions*> driver();

// A failure of the driver: "`what`: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". kSuccess becomes ok.
// Call only after driver() has succeeded.
Status from_cuda(std::string_view what, ResultCode result);

// One device of this process, with its primary context, which the CUDA runtime also uses. A value;
// the context is kept for the life of the process.
struct Device {
  const Functions* functions = nullptr;
  Ordinal ordinal = 0;
  ContextHandle context = nullptr;
};

// The device that memspan would use now: the one that MEMSPAN_DEVICE=cuda:N names, else that of the
// calling thread's context, else device 0. open_device() keeps the first one for the process.
// kInvalidArgument if the variable names no existing device. Thread-safe.
Result<Device> device();

// "NVIDIA X (device 0 of 2, driver 13.0)", or why no device can be used. Does not choose a device.
Result<std::string> describe_devices();

// Makes the device's primary context current in the calling thread; its destructor restores the
// previous one. Move-only value, of one thread.
class CurrentContext {
 public:
  static Result<CurrentContext> of(const Device& device);
  CurrentContext(CurrentContext&& other) noexcept
      : functions_(std::exchange(other.functions_, nullptr)) {}
  ~CurrentContext();

 private:
  explicit CurrentContext(const Functions& functions) : functions_(&functions) {}
  const Functions* functions_;  // null: moved from
};

}  // namespace memspan::cuda
