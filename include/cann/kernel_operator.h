// SPDX-License-Identifier: Apache-2.0
// What sources in AscendC include: the language's words as views on the host device, and launches,
// kernel<<<blocks, l2, stream>>>(arguments...). Such a source is compiled through memspan-kernels,
// which turns AscendC's extensions into calls of this file (docs/cann.md). C++17.
#ifndef MEMSPAN_CANN_KERNEL_OPERATOR_H
#define MEMSPAN_CANN_KERNEL_OPERATOR_H

#include <tuple>
#include <type_traits>
#include <utility>

#include "../aclshmem/device/ascendc.h"
#include "../aclshmem/device/ascendc_pipe.h"
#include "../memspan/launch.h"
#include "../memspan/memspan.h"

// The vector cores of a chip that sources know: they leave kernels empty for others.
#ifndef __DAV_C220_VEC__
#define __DAV_C220_VEC__ 1
#endif

namespace memspan::device {

// A launch's place and arguments; ->* with the kernel before it launches.
template <typename... Arguments>
struct Call {
  unsigned blocks;
  memspan_stream_t stream;
  std::tuple<Arguments...> arguments;
};
struct Place {
  unsigned blocks;
  memspan_stream_t stream;
  template <typename... Arguments>
  Call<Arguments...> operator()(Arguments... arguments) const {
    return {blocks, stream, std::tuple<Arguments...>(std::move(arguments)...)};
  }
};
// The second says how much of a cache the kernel may have, which means nothing here. A null stream
// is the default one.
template <typename Blocks, typename L2, typename Stream>
inline Place on(Blocks blocks, L2, Stream stream) {
  const memspan_stream_t given = (memspan_stream_t)stream;
  return {static_cast<unsigned>(blocks), given == nullptr ? memspan_stream_default() : given};
}

// All blocks run at the same time, as on a chip with a core for each: kernels poll for each other.
// A launch that is refused ends the process with a line that says why.
template <typename... Parameters, typename... Arguments>
inline void operator->*(void (*kernel)(Parameters...), const Call<Arguments...>& call) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "a launch gives as many arguments as the kernel takes");
  std::tuple<std::decay_t<Parameters>...> arguments = std::apply(
      [](const auto&... given) {
        return std::tuple<std::decay_t<Parameters>...>(
            static_cast<std::decay_t<Parameters>>(given)...);
      },
      call.arguments);
  const auto run = [kernel](const std::tuple<std::decay_t<Parameters>...>& given) {
    memspan_kernel_let_others_begin();
    std::apply(kernel, given);
  };
  if (launch(call.stream, call.blocks, run, std::move(arguments)) != 0)
    end_kernel("a kernel's launch", memspan_last_error());
}

}  // namespace memspan::device

#endif
