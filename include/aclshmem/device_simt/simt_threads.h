// SPDX-License-Identifier: Apache-2.0
// Threads of SIMT code on the host device: asc_vf_call<function>(threads, arguments...) calls the
// function once for each of them, one after the other, on the thread that runs the block. A
// function whose threads wait for each other does not end; what a warp or a block does together,
// its first thread does. C++17.
#ifndef MEMSPAN_ACLSHMEM_SIMT_THREADS_H
#define MEMSPAN_ACLSHMEM_SIMT_THREADS_H

#include <cstdint>

#include "../../memspan/kernel.h"

#ifndef MEMSPAN_NO_ASCENDC

#ifndef __simt_vf__
#define __simt_vf__
#endif
#ifndef __simt_callee__
#define __simt_callee__
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif

struct dim3 {
  constexpr dim3(std::uint32_t x = 1, std::uint32_t y = 1, std::uint32_t z = 1)
      : x(x), y(y), z(z) {}
  std::uint32_t x, y, z;
};

namespace memspan::device {
struct SimtPosition {
  dim3 thread{0, 0, 0};
  dim3 threads;
};
inline thread_local SimtPosition simt_position;
}  // namespace memspan::device

#define threadIdx (::memspan::device::simt_position.thread)
#define blockDim (::memspan::device::simt_position.threads)

template <auto function, typename... Arguments>
inline void asc_vf_call(dim3 threads, Arguments... arguments) {
  auto& position = ::memspan::device::simt_position;
  const auto before = position;
  position.threads = threads;
  for (std::uint32_t z = 0; z < threads.z; ++z)
    for (std::uint32_t y = 0; y < threads.y; ++y)
      for (std::uint32_t x = 0; x < threads.x; ++x) {
        position.thread = dim3(x, y, z);
        function(arguments...);
      }
  position = before;
}

#endif  // MEMSPAN_NO_ASCENDC

namespace memspan::device {

// This thread does what all threads of the scope were called for.
template <kernel::Scope scope>
inline bool leads() {
#ifndef MEMSPAN_NO_ASCENDC
  constexpr std::uint32_t kWarp = 32;
  const SimtPosition& at = simt_position;
  const std::uint32_t number =
      at.thread.x + at.threads.x * (at.thread.y + at.threads.y * at.thread.z);
  if constexpr (scope == kernel::Scope::kWarp) return number % kWarp == 0;
  if constexpr (scope == kernel::Scope::kBlock) return number == 0;
#endif
  return true;
}

}  // namespace memspan::device

#endif
