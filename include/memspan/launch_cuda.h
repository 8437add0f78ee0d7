// SPDX-License-Identifier: Apache-2.0
// The part of <memspan/launch.h> that nvcc compiles: CUDA kernels on CUDA's streams. C++17.
#ifndef MEMSPAN_LAUNCH_CUDA_H
#define MEMSPAN_LAUNCH_CUDA_H

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <tuple>
#include <utility>

#include "memspan.h"

namespace memspan {

// Whether all blocks of a grid run at once. Only then they may wait for each other (sync_grid(),
// barrier()), or for blocks of other PEs that wait for them.
enum class Residency { kAll, kAny };

struct Grid {
  unsigned blocks = 1;
  unsigned threads = 1;          // of a block
  std::size_t shared_bytes = 0;  // dynamic, of a block
  Residency residency = Residency::kAll;
};

namespace detail {

inline std::int32_t launch_failure(std::int32_t code, const char* why) {
  return memspan_keep_failure("memspan::launch", code, why);
}
inline std::int32_t launch_failure(cudaError_t result) {
  return launch_failure(-1, cudaGetErrorString(result));
}

// How many blocks of the kernel are resident at once on the current device.
inline cudaError_t count_resident_blocks(const void* kernel, const Grid& grid, unsigned* blocks) {
  int device = 0;
  int processors = 0;
  int of_one = 0;
  cudaError_t result = cudaGetDevice(&device);
  if (result == cudaSuccess)
    result = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (result == cudaSuccess)
    result = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &of_one, kernel, static_cast<int>(grid.threads), grid.shared_bytes);
  *blocks = static_cast<unsigned>(processors * of_one);
  return result;
}

inline std::int32_t launch_resident(cudaStream_t stream, const Grid& grid, const void* kernel,
                                    void** arguments) {
  constexpr std::int32_t kInvalidParam = -2000;
  unsigned most = 0;
  cudaError_t result = count_resident_blocks(kernel, grid, &most);
  if (result != cudaSuccess) return launch_failure(result);
  if (grid.blocks > most) {
    char why[160];
    std::snprintf(why, sizeof why,
                  "%u blocks of %u threads; at most %u are resident at once on this device, and "
                  "others would never begin where blocks wait for each other",
                  grid.blocks, grid.threads, most);
    return launch_failure(kInvalidParam, why);
  }
  result = cudaLaunchCooperativeKernel(kernel, dim3(grid.blocks), dim3(grid.threads), arguments,
                                       grid.shared_bytes, stream);
  return result == cudaSuccess ? 0 : launch_failure(result);
}

}  // namespace detail

// Launches kernel(arguments...), a __global__ function, in the stream's order. 0, or a code of
// smem/host/smem.h (memspan_last_error() says why). CUDA reports failures of the kernel at the
// stream's next synchronisation.
template <typename... Parameters, typename... Arguments>
std::int32_t launch(cudaStream_t stream, const Grid& grid, void (*kernel)(Parameters...),
                    Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments));
  std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  return std::apply(
      [&](auto&... value) {
        void* addresses[] = {static_cast<void*>(&value)..., nullptr};
        const auto* const function = reinterpret_cast<const void*>(kernel);
        if (grid.residency == Residency::kAll)
          return detail::launch_resident(stream, grid, function, addresses);
        const cudaError_t result = cudaLaunchKernel(function, dim3(grid.blocks), dim3(grid.threads),
                                                    addresses, grid.shared_bytes, stream);
        return result == cudaSuccess ? 0 : detail::launch_failure(result);
      },
      values);
}

// A grid says how many threads a block has.
template <typename... Arguments>
std::int32_t launch(cudaStream_t stream, unsigned blocks, Arguments&&... arguments) = delete;

}  // namespace memspan

#endif  // MEMSPAN_LAUNCH_CUDA_H
