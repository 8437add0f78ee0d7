// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/endpoint_lanes.h"

#include <cstdio>
#include <cstdlib>

namespace memspan::ucx {

NativeLanes lanes_of(ucp_ep_h endpoint) {
  char* text = nullptr;
  std::size_t size = 0;
  FILE* const stream = ::open_memstream(&text, &size);
  if (stream == nullptr) return {};
  ucp_ep_print_info(endpoint, stream);
  std::fclose(stream);
  NativeLanes lanes = native_lanes({text, size});
  std::free(text);
  return lanes;
}

}  // namespace memspan::ucx
