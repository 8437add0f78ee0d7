// SPDX-License-Identifier: Apache-2.0
// What driver_types.h declares is what <cuda.h> declares: compiled where there is a toolkit.
#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "device/cuda/driver_types.h"

namespace memspan::cuda {
namespace {

static_assert(kSuccess == CUDA_SUCCESS);
static_assert(kInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(kOutOfDeviceMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(kInvalidDevice == CUDA_ERROR_INVALID_DEVICE);
static_assert(kNotSupportedByDevice == CUDA_ERROR_NOT_SUPPORTED);

static_assert(kPinned == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(kFileDescriptor == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
static_assert(kOnDevice == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(kReadWrite == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(kLeastGranularity == CU_MEM_ALLOC_GRANULARITY_MINIMUM);
static_assert(kDeviceMemory == CU_MEMORYTYPE_DEVICE);
static_assert(kNonBlockingStream == CU_STREAM_NON_BLOCKING);
static_assert(kWaitUntilAtLeast == CU_STREAM_WAIT_VALUE_GEQ);
static_assert(kWaitUntilEqual == CU_STREAM_WAIT_VALUE_EQ);
static_assert(kPortable == CU_MEMHOSTREGISTER_PORTABLE);

static_assert(int{kMemoryType} == int{CU_POINTER_ATTRIBUTE_MEMORY_TYPE});
static_assert(int{kIsIpcCapable} == int{CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE});
static_assert(int{kShareableAs} == int{CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES});
static_assert(int{kPool} == int{CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE});
static_assert(int{kHasUnifiedAddresses} == int{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING});
static_assert(int{kHasVirtualMemory} ==
              int{CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED});
static_assert(int{kExportsDescriptors} ==
              int{CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED});

static_assert(sizeof(Location) == sizeof(CUmemLocation));
static_assert(offsetof(Location, id) == offsetof(CUmemLocation, id));
static_assert(sizeof(AllocationProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(AllocationProperties, kind) == offsetof(CUmemAllocationProp, type));
static_assert(offsetof(AllocationProperties, shareable_as) ==
              offsetof(CUmemAllocationProp, requestedHandleTypes));
static_assert(offsetof(AllocationProperties, where) == offsetof(CUmemAllocationProp, location));
static_assert(offsetof(AllocationProperties, unused) ==
              offsetof(CUmemAllocationProp, win32HandleMetaData));
static_assert(offsetof(AllocationProperties, compression) ==
              offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(Access) == sizeof(CUmemAccessDesc));
static_assert(offsetof(Access, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(sizeof(IpcHandle) == sizeof(CUipcMemHandle));
static_assert(sizeof(PoolPointer) == sizeof(CUmemPoolPtrExportData));
static_assert(kLazyPeerAccess == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
static_assert(sizeof(ResultCode) == sizeof(CUresult));
static_assert(sizeof(Ordinal) == sizeof(CUdevice));
static_assert(sizeof(DevicePtr) == sizeof(CUdeviceptr));
static_assert(sizeof(AllocationHandle) == sizeof(CUmemGenericAllocationHandle));

// As many parameters of the same sizes, in the same order.
template <typename Ours, typename Theirs>
struct Alike : std::false_type {};
template <typename... Ours, typename... Theirs>
struct Alike<ResultCode (*)(Ours...), CUresult (*)(Theirs...)>
    : std::bool_constant<sizeof...(Ours) == sizeof...(Theirs)> {
  static constexpr bool are_sizes_equal() {
    if constexpr (sizeof...(Ours) == sizeof...(Theirs))
      return ((sizeof(Ours) == sizeof(Theirs)) && ...) &&
             ((std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>)&&...);
    else
      return false;
  }
};

// cuda.h renames some functions to the versions that its types are of; so does this list.
#define MEMSPAN_CUDA_COMPARE(name, symbol, parameters)                                      \
  static_assert(Alike<decltype(Functions::name), decltype(&symbol)>::value &&               \
                    Alike<decltype(Functions::name), decltype(&symbol)>::are_sizes_equal(), \
                #symbol);
MEMSPAN_CUDA_DRIVER_FUNCTIONS(MEMSPAN_CUDA_COMPARE)
#if CUDA_VERSION >= 11070
MEMSPAN_CUDA_LATER_FUNCTIONS(MEMSPAN_CUDA_COMPARE)
#endif
#undef MEMSPAN_CUDA_COMPARE

}  // namespace
}  // namespace memspan::cuda
