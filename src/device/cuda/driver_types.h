// SPDX-License-Identifier: Apache-2.0
// The CUDA driver's binary interface as far as memspan calls it: types, constants and a table of
// functions. They are declared here, so neither the build nor the machine needs a CUDA toolkit.
// tests/unit/device/cuda_interface.cc compares them with <cuda.h> if it is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memspan::cuda {

// The result of each function of the driver. The values that memspan distinguishes have names.
using ResultCode = int;
inline constexpr ResultCode kSuccess = 0;
inline constexpr ResultCode kInvalidValue = 1;
inline constexpr ResultCode kOutOfDeviceMemory = 2;
inline constexpr ResultCode kNoDevice = 100;
inline constexpr ResultCode kInvalidDevice = 101;
inline constexpr ResultCode kNotSupportedByDevice = 801;

using Ordinal = int;               // of a device, counted from 0
using DevicePtr = std::uintptr_t;  // an address that the device knows
using AllocationHandle = unsigned long long;

// Opaque. A cudaStream_t is a StreamHandle, a cudaMemPool_t a PoolHandle.
using ContextHandle = struct ContextObject*;
using StreamHandle = struct StreamObject*;
using PoolHandle = struct PoolObject*;
using HostFunction = void (*)(void* data);

inline constexpr int kPinned = 1;            // a kind of allocation: physical memory of one device
inline constexpr int kFileDescriptor = 1;    // a kind of shareable handle
inline constexpr int kOnDevice = 1;          // a kind of location: `id` is an ordinal
inline constexpr int kReadWrite = 3;         // access flags
inline constexpr int kLeastGranularity = 0;  // what to ask allocation_granularity() for
inline constexpr unsigned kUnknownMemory = 0;  // a value of kMemoryType; ours, not the driver's
inline constexpr unsigned kDeviceMemory = 2;
inline constexpr unsigned kNonBlockingStream = 1;
inline constexpr unsigned kWaitUntilAtLeast = 0;  // for stream_wait_value(): as signed numbers
inline constexpr unsigned kWaitUntilEqual = 1;
inline constexpr unsigned kPortable = 1;  // for host_register(): pinned for all contexts

enum PointerAttribute : int {
  kMemoryType = 2,     // unsigned
  kIsIpcCapable = 10,  // unsigned: ipc_share() takes it
  kShareableAs = 14,   // unsigned: bits, the kinds of shareable handle that it was made for
  kPool = 17,          // PoolHandle; null: not of a pool
};

enum DeviceAttribute : int {
  kHasUnifiedAddresses = 41,
  kHasVirtualMemory = 102,
  kExportsDescriptors = 103,
};

struct Location {
  int kind = kOnDevice;
  int id = 0;
};

struct AllocationProperties {
  int kind = kPinned;
  int shareable_as = kFileDescriptor;
  Location where;
  void* unused = nullptr;  // for another operating system
  unsigned char compression = 0;
  unsigned char is_rdma_capable = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};

struct Access {
  Location who;
  int flags = kReadWrite;
};

// Memory of a program as the driver names it to other processes: a handle of an allocation, or the
// name of one pool allocation for a process that has imported the pool.
struct SharedName {
  char bytes[64] = {};
};
using IpcHandle = SharedName;
using PoolPointer = SharedName;
inline constexpr unsigned kLazyPeerAccess = 1;

// Every function that memspan calls: name here, symbol in the driver, parameters.
// clang-format off
#define MEMSPAN_CUDA_DRIVER_FUNCTIONS(F)                                                           \
  F(init, cuInit, (unsigned flags))                                                                \
  F(driver_version, cuDriverGetVersion, (int* version))                                            \
  F(error_name, cuGetErrorName, (ResultCode error, const char** name))                             \
  F(error_string, cuGetErrorString, (ResultCode error, const char** text))                         \
  F(device_count, cuDeviceGetCount, (int* count))                                                  \
  F(device_get, cuDeviceGet, (Ordinal* device, int ordinal))                                       \
  F(device_name, cuDeviceGetName, (char* name, int bytes, Ordinal device))                         \
  F(device_attribute, cuDeviceGetAttribute, (int* value, int attribute, Ordinal device))           \
  F(primary_context_retain, cuDevicePrimaryCtxRetain, (ContextHandle* context, Ordinal device))    \
  F(context_get_current, cuCtxGetCurrent, (ContextHandle* context))                                \
  F(context_push_current, cuCtxPushCurrent_v2, (ContextHandle context))                            \
  F(context_pop_current, cuCtxPopCurrent_v2, (ContextHandle* context))                             \
  F(context_get_device, cuCtxGetDevice, (Ordinal* device))                                         \
  F(memory_info, cuMemGetInfo_v2, (std::size_t* free, std::size_t* total))                         \
  F(address_reserve, cuMemAddressReserve,                                                          \
    (DevicePtr* at, std::size_t bytes, std::size_t alignment, DevicePtr wanted,                    \
     unsigned long long flags))                                                                    \
  F(address_free, cuMemAddressFree, (DevicePtr at, std::size_t bytes))                             \
  F(allocation_create, cuMemCreate,                                                                \
    (AllocationHandle* handle, std::size_t bytes, const AllocationProperties* properties,          \
     unsigned long long flags))                                                                    \
  F(allocation_release, cuMemRelease, (AllocationHandle handle))                                   \
  F(allocation_granularity, cuMemGetAllocationGranularity,                                         \
    (std::size_t* bytes, const AllocationProperties* properties, int which))                       \
  F(map, cuMemMap, (DevicePtr at, std::size_t bytes, std::size_t offset, AllocationHandle handle,  \
                    unsigned long long flags))                                                     \
  F(unmap, cuMemUnmap, (DevicePtr at, std::size_t bytes))                                          \
  F(set_access, cuMemSetAccess,                                                                    \
    (DevicePtr at, std::size_t bytes, const Access* access, std::size_t count))                    \
  F(export_handle, cuMemExportToShareableHandle,                                                   \
    (void* shareable, AllocationHandle handle, int kind, unsigned long long flags))                \
  F(import_handle, cuMemImportFromShareableHandle,                                                 \
    (AllocationHandle* handle, void* shareable, int kind))                                         \
  F(retain_handle, cuMemRetainAllocationHandle, (AllocationHandle* handle, void* at))              \
  F(pool_export, cuMemPoolExportToShareableHandle,                                                 \
    (void* shareable, PoolHandle pool, int kind, unsigned long long flags))                        \
  F(pool_import, cuMemPoolImportFromShareableHandle,                                               \
    (PoolHandle* pool, void* shareable, int kind, unsigned long long flags))                       \
  F(pool_export_pointer, cuMemPoolExportPointer, (PoolPointer* shared, DevicePtr pointer))         \
  F(pool_import_pointer, cuMemPoolImportPointer,                                                   \
    (DevicePtr* at, PoolHandle pool, PoolPointer* shared))                                         \
  F(pool_set_access, cuMemPoolSetAccess,                                                           \
    (PoolHandle pool, const Access* access, std::size_t count))                                    \
  F(pool_destroy, cuMemPoolDestroy, (PoolHandle pool))                                             \
  F(memory_free, cuMemFree_v2, (DevicePtr at))                                                     \
  F(pointer_attribute, cuPointerGetAttribute, (void* value, int attribute, DevicePtr pointer))     \
  F(address_range, cuMemGetAddressRange_v2,                                                        \
    (DevicePtr* base, std::size_t* bytes, DevicePtr pointer))                                      \
  F(ipc_share, cuIpcGetMemHandle, (IpcHandle* handle, DevicePtr base))                             \
  F(ipc_open, cuIpcOpenMemHandle_v2, (DevicePtr* base, IpcHandle handle, unsigned flags))          \
  F(ipc_close, cuIpcCloseMemHandle, (DevicePtr base))                                              \
  F(host_register, cuMemHostRegister_v2, (void* base, std::size_t bytes, unsigned flags))          \
  F(host_unregister, cuMemHostUnregister, (void* base))                                            \
  F(copy_async, cuMemcpyAsync,                                                                     \
    (DevicePtr to, DevicePtr from, std::size_t bytes, StreamHandle stream))                        \
  F(fill_async, cuMemsetD8Async,                                                                   \
    (DevicePtr to, unsigned char value, std::size_t bytes, StreamHandle stream))                   \
  F(launch_host_function, cuLaunchHostFunc,                                                        \
    (StreamHandle stream, HostFunction function, void* data))                                      \
  F(stream_create, cuStreamCreate, (StreamHandle* stream, unsigned flags))                         \
  F(stream_synchronize, cuStreamSynchronize, (StreamHandle stream))                                \
  F(stream_destroy, cuStreamDestroy_v2, (StreamHandle stream))
// Functions that a driver may lack.
#define MEMSPAN_CUDA_LATER_FUNCTIONS(F)                                                            \
  F(stream_wait_value, cuStreamWaitValue32_v2,                                                     \
    (StreamHandle stream, DevicePtr word, std::uint32_t value, unsigned flags))
// clang-format on

// The driver's functions. In a table that driver() returns all members are set, except those of the
// second list that the driver lacks.
struct Functions {
#define MEMSPAN_CUDA_DECLARE(name, symbol, parameters) ResultCode(*name) parameters = nullptr;
  MEMSPAN_CUDA_DRIVER_FUNCTIONS(MEMSPAN_CUDA_DECLARE)
  MEMSPAN_CUDA_LATER_FUNCTIONS(MEMSPAN_CUDA_DECLARE)
#undef MEMSPAN_CUDA_DECLARE
};

}  // namespace memspan::cuda
