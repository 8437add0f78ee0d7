/* SPDX-License-Identifier: Apache-2.0
 * For machines without RDMA: in place of ucp_mem_map(), memory that is registered with UCX becomes
 * UCX's own shared memory, which its transports posix and sysv reach natively between processes of
 * one machine. The contents are kept, but for what is written during the call; mappings of the same
 * memory elsewhere part from it. Linked into a test, or preloaded.
 *
 * MEMSPAN_TEST_PLAIN_REGISTRATIONS set: it leaves the memory what it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

__attribute__((visibility("default"))) ucs_status_t ucp_mem_map(ucp_context_h context,
                                                                const ucp_mem_map_params_t* params,
                                                                ucp_mem_h* memory) {
  /* It is there already, out of sight of RTLD_NEXT: with a module that was loaded for itself. */
  void* const library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL) return UCS_ERR_NO_DEVICE;
  ucs_status_t (*const map)(ucp_context_h, const ucp_mem_map_params_t*, ucp_mem_h*) =
      (ucs_status_t(*)(ucp_context_h, const ucp_mem_map_params_t*, ucp_mem_h*))dlsym(library,
                                                                                     "ucp_mem_map");
  if (map == NULL) return UCS_ERR_NO_ELEM;
  if (getenv("MEMSPAN_TEST_PLAIN_REGISTRATIONS") != NULL) return map(context, params, memory);
  char* const kept = malloc(params->length);
  if (kept == NULL) return UCS_ERR_NO_MEMORY;
  memcpy(kept, params->address, params->length);
  ucp_mem_map_params_t shared = *params;
  shared.field_mask |= UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  shared.flags = UCP_MEM_MAP_ALLOCATE | UCP_MEM_MAP_FIXED;
  const ucs_status_t status = map(context, &shared, memory);
  if (status == UCS_OK) memcpy(params->address, kept, params->length);
  free(kept);
  return status;
}
