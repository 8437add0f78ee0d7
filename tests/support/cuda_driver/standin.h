// SPDX-License-Identifier: Apache-2.0
// A stand-in of the CUDA driver for tests on machines without a GPU: a libcuda.so.1 that has the
// functions that memspan calls, over memfds and threads. It shows that the right calls are made in
// the right order with the right arguments; it says nothing about a GPU.
//
// Memory of its devices is mapped at the program's addresses without any access, and a second time
// elsewhere for the stand-in's own copies: a plain load or store of the program at a device address
// is a fault here, as it is with a GPU.
//
// MEMSPAN_TEST_CUDA_DEVICES: how many devices there are, 1 without it. MEMSPAN_TEST_CUDA_BYTES: how
// much memory each process may take of each, 1 GiB without it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "device/cuda/driver_types.h"

#define STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace memspan::cuda {
using EventHandle = struct EventObject*;  // a cudaEvent_t
}

namespace standin {

using namespace memspan::cuda;

// What programs call or get from the driver, and memspan does not.
inline constexpr ResultCode kInvalidContext = 201;
inline constexpr ResultCode kNotReady = 600;
inline constexpr ResultCode kNotPermitted = 800;
inline constexpr unsigned kHostMemory = 1;  // pinned
inline constexpr int kIsManaged = 8;        // attributes of a pointer
inline constexpr int kDeviceOrdinal = 9;
inline constexpr int kRangeStart = 11;
inline constexpr int kRangeBytes = 12;

// Whether a call may go on: the driver was started in this process, which is not a child of the one
// that started it, the thread has a context where one is needed, and it is not in a call that a
// stream makes, which must not use the driver.
enum class Needs { kDriver, kContext };
ResultCode check(Needs needs);
Ordinal current_device();
int devices();

// A device address range that is mapped and that the device may touch, as the stand-in's own copies
// see it; holds it while they are at it.
struct Touchable {
  std::shared_ptr<const void> holds;
  std::byte* at = nullptr;  // null: what was named is device memory that may not be touched
  std::size_t bytes = 0;    // of those that were named: the others lie in the next mapping
};
// `pointer` itself, where it is no device address.
Touchable find(DevicePtr pointer, std::size_t bytes);
bool is_touchable(DevicePtr pointer, std::size_t bytes);
// Memory of the host that is not pinned.
bool is_plain(DevicePtr pointer);

extern thread_local bool is_in_call_of_stream;

// Does `work` behind what was given to the stream before.
ResultCode enqueue(StreamHandle stream, std::function<ResultCode()> work);

}  // namespace standin
