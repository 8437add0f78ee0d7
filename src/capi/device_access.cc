// SPDX-License-Identifier: Apache-2.0
// Addresses that may be memory of a device, and those of PEs that are mapped.
#include "capi/access.h"

namespace memspan::capi {

// By the library's own routes, which are direct where memory is mapped.
void* host_address_beside_device(void* address, int pe) {
  const Route* const route = process_state.world->routes().find(address, 1, pe);
  return route == nullptr || !route->is_direct() ? nullptr : route->address(address);
}

void* mapped_address(void* address, int pe) {
  const RouteTable& routes = process_state.routes;
  if (!routes.is_on_device(address, 1)) return host_address(address, pe);
  if (static_cast<std::uint32_t>(pe) >= routes.peers) return nullptr;
  return process_state.world->device_heap()->address_at(address, pe);
}

bool is_on_device(const char* call, const char* argument, const void* address, std::size_t bytes) {
  reach(call, argument, address, bytes, 0);
  return process_state.routes.is_on_device(address, bytes);
}

void require_host_memory_elsewhere(const char* call, const char* argument, const void* address,
                                   std::size_t bytes) {
  if (is_on_device(call, argument, address, bytes)) end_for_device_memory(call, argument, address);
}

void copy_from_device(const char* call, void* to, const void* from, std::size_t bytes) try {
  require(call, process_state.world->device_heap()->device().copy(to, from, bytes));
}
MEMSPAN_CATCH_AND_END(call)

}  // namespace memspan::capi
