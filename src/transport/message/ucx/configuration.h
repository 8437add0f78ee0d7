// SPDX-License-Identifier: Apache-2.0
// Sets up UCX from the environment (UCX_*), with defaults for the rest.
#pragma once

#include <ucp/api/ucp.h>

#include <string>
#include <string_view>

#include "core/status.h"

namespace memspan::ucx {

// Translates UCX's statuses: "`what`: Unreachable".
Status from_ucs(std::string_view what, ucs_status_t status);

// With streams and wake-ups, and active messages if it `has_messages`. It does not request
// one-sided operations, so no handler of them listens. `device`: the only network device, unless
// UCX_NET_DEVICES is set; empty: any.
Result<ucp_context_h> create_context(const std::string& device, bool has_messages);

// With only one-sided operations and wake-ups, on all devices and without TCP. kNotSupported if UCX
// may use only TCP.
Result<ucp_context_h> create_native_context();

// While it lives, UCX logs nothing in this thread: attempts may fail, and the caller reports the
// result.
class QuietUcx {
 public:
  QuietUcx();
  ~QuietUcx();
  QuietUcx(const QuietUcx&) = delete;
  QuietUcx& operator=(const QuietUcx&) = delete;
};

}  // namespace memspan::ucx
