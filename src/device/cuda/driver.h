// SPDX-License-Identifier: Apache-2.0
// The CUDA driver (libcuda.so.1), loaded when a CUDA device is first asked for. A process that asks
// for none never opens it.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "device/cuda/driver_types.h"

namespace memspan::cuda {

// The driver's functions; it is initialised and has a device. The first call loads it, for good;
// later ones give the same answer. kNotSupported: there is no driver here, or one without a
// function that we need; kUnavailable: it finds no device or cannot start, in its own words.
// Thread-safe.
Result<const Functions*> driver();

// A failure of the driver: "`what`: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". kSuccess becomes ok.
// Only after driver() gave its functions.
Status from_cuda(std::string_view what, ResultCode result);

// One device of this process, with its primary context, which the CUDA runtime uses, too. A value;
// the context is kept for the life of the process.
struct Device {
  const Functions* functions = nullptr;
  Ordinal ordinal = 0;
  ContextHandle context = nullptr;
};

// The device that memspan uses in this process: MEMSPAN_CUDA_DEVICE names it, else it is the device
// of the calling thread's context, else device 0. Decided by the first call that succeeds.
// kInvalidArgument when the variable names none that is here. Thread-safe.
Result<Device> device();

// "NVIDIA X (device 0 of 2, driver 13.0)", or why there is none. Does not decide on a device.
Result<std::string> describe_devices();

// While it lives, the device's primary context is the calling thread's; the one before comes back
// at the end. Not copyable, of one thread.
class CurrentContext {
 public:
  explicit CurrentContext(const Device& device);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  const Status& status() const { return status_; }

 private:
  const Functions& functions_;
  Status status_;
};

}  // namespace memspan::cuda
