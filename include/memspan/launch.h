// SPDX-License-Identifier: Apache-2.0
// Launches a kernel, a C++ function or function object, on a stream of the host device; in sources
// that nvcc compiles also a __global__ function on a stream of CUDA. C++17.
// memspan's own; the counterpart of kernel<<<blocks, ..., stream>>>(arguments...).
#ifndef MEMSPAN_LAUNCH_H
#define MEMSPAN_LAUNCH_H

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "stream.h"

namespace memspan {

// Calls kernel(arguments...) once for each block, in the stream's order, while the caller
// continues. Kernel and arguments are copied, and all blocks get the same copies. 0, or a code of
// smem/host/smem.h (memspan_last_error() says why). An exception of the kernel ends the process.
template <typename Kernel, typename... Arguments>
std::int32_t launch(memspan_stream_t stream, unsigned blocks, Kernel kernel,
                    Arguments... arguments) {
  static_assert(std::is_invocable_v<const Kernel&, Arguments&...>);
  struct Call {
    Kernel kernel;
    std::tuple<Arguments...> arguments;
  };
  const auto run = [](void* it) noexcept {
    auto& call = *static_cast<Call*>(it);
    std::apply(std::as_const(call.kernel), call.arguments);
  };
  const auto release = [](void* it) { delete static_cast<Call*>(it); };
  return memspan_stream_launch(
      stream, blocks, run,
      new Call{std::move(kernel), std::tuple<Arguments...>(std::move(arguments)...)}, release);
}

}  // namespace memspan

#if defined __CUDACC__
#include "launch_cuda.h"
#endif

#endif  // MEMSPAN_LAUNCH_H
