// SPDX-License-Identifier: Apache-2.0
// The result of starting a UCX operation: a request, or a final status.
#pragma once

#include <ucp/api/ucp.h>

namespace memspan::ucx {

inline bool is_pending(ucs_status_ptr_t request) {
  return UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS;
}

// The status of an ended one, which it frees.
inline ucs_status_t end(ucs_status_ptr_t request) {
  if (!UCS_PTR_IS_PTR(request)) return UCS_PTR_STATUS(request);
  const ucs_status_t status = ucp_request_check_status(request);
  ucp_request_free(request);
  return status;
}

}  // namespace memspan::ucx
