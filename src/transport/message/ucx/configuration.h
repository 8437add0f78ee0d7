// SPDX-License-Identifier: Apache-2.0
// Sets up UCX from the environment (UCX_*), with defaults for the rest.
#pragma once

#include <ucp/api/ucp.h>

#include "core/environment.h"

namespace memspan::ucx {

// Translates UCX's statuses: "`what`: Unreachable".
Status from_ucs(std::string_view what, ucs_status_t status);

// Allowed unless UCX_TLS is set. Processes that share memory with this one use the
// transport "mapped".
inline constexpr const char* kTransports = "^posix,sysv,cma";

// Whether a network may move bytes by itself. A named device is a network interface, over which UCX
// uses TCP.
bool has_rdma(const std::string& device);

// With UCP_FEATURE_*, and nothing else, so no handler of other operations listens. `device`: the
// only network device, unless UCX_NET_DEVICES is set; empty: any. Without RDMA all is eager, unless
// UCX_RNDV_THRESH is set: all else copies bytes in pieces, which rendezvous only delays.
Result<ucp_context_h> create_context(std::uint64_t features, const std::string& device,
                                     const std::string& transports = environment_or("UCX_TLS",
                                                                                    kTransports));

// A worker and its descriptor.
Status create_worker(ucp_context_h context, ucp_worker_h& worker, int& descriptor);
// The request of the closing, or its status.
ucs_status_ptr_t close_by_force(ucp_ep_h endpoint);

// While it lives, UCX logs nothing in this thread: attempts may fail, and the caller reports the
// result.
class QuietUcx : NotCopyable {
 public:
  QuietUcx() { ++depth_; }
  ~QuietUcx() { --depth_; }
  static bool is_on() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace memspan::ucx
