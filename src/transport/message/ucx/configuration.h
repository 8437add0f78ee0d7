// SPDX-License-Identifier: Apache-2.0
// How UCX is set up: what the environment says (UCX_*), and defaults for what it does not.
#pragma once

#include <ucp/api/ucp.h>

#include <string>
#include <string_view>

#include "core/status.h"

namespace memspan::ucx {

// The one translator of UCX's statuses: "`what`: Unreachable".
Status from_ucs(std::string_view what, ucs_status_t status);

// With streams and wake-ups, and active messages if it `has_messages`: one-sided operations are not
// asked for, so no handler of them listens. `device`: the only network device, unless
// UCX_NET_DEVICES is set; empty: any.
Result<ucp_context_h> create_context(const std::string& device, bool has_messages);

// With one-sided operations and wake-ups only, on all devices and without TCP. kNotSupported where
// UCX is to use nothing but TCP.
Result<ucp_context_h> create_native_context();

// While it lives, UCX's log says nothing in this thread: what is tried may fail, and who tries says
// how it ended.
class QuietUcx {
 public:
  QuietUcx();
  ~QuietUcx();
  QuietUcx(const QuietUcx&) = delete;
  QuietUcx& operator=(const QuietUcx&) = delete;
};

}  // namespace memspan::ucx
