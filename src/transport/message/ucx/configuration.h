// SPDX-License-Identifier: Apache-2.0
// Sets up UCX from the environment (UCX_*), with defaults for the rest.
#pragma once

#include <fmt/format.h>
#include <pthread.h>
#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/environment.h"

namespace memspan::ucx {

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

// Never to stdout, which belongs to the program.
inline ucs_log_func_rc_t log_to_stderr(const char*, unsigned, const char*, ucs_log_level_t,
                                       const ucs_log_component_config_t*, const char* format,
                                       va_list arguments) {
  if (QuietUcx::is_on()) return UCS_LOG_FUNC_RC_STOP;
  std::array<char, 512> text;
  std::vsnprintf(text.data(), text.size(), format, arguments);
  const std::string line = fmt::format("memspan: UCX: {}\n", text.data());
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  return UCS_LOG_FUNC_RC_STOP;
}

// For objects of UCX: they belong to the process that made them, and a child of fork() touches
// nothing. Cheaper than getpid(), a system call, because each look at UCX asks.
class OwnProcess {
 public:
  bool is_foreign() const { return forks() != made_after_; }

 private:
  static int& forks() {
    static int count = 0;
    [[maybe_unused]] static const int registered =
        pthread_atfork(nullptr, nullptr, [] { ++forks(); });
    return count;
  }

  const int made_after_ = forks();
};

// Translates UCX's statuses: "`what`: Unreachable".
inline Status from_ucs(std::string_view what, ucs_status_t status) {
  if (status == UCS_OK) return Status::ok();
  Code code = Code::kSystem;
  if (status == UCS_ERR_NO_MEMORY) code = Code::kOutOfMemory;
  if (status == UCS_ERR_UNREACHABLE || status == UCS_ERR_NO_DEVICE) code = Code::kUnreachable;
  return {code, fmt::format("{}: {}", what, ucs_status_string(status))};
}

// Allowed unless UCX_TLS is set. Processes that share memory with this one use the
// transport "mapped".
inline constexpr const char* kTransports = "^posix,sysv,cma";

// Whether a network may move bytes by itself. A named device is a network interface, over which UCX
// uses TCP.
inline bool has_rdma(const std::string& device) {
  std::error_code failed;
  return device.empty() && std::filesystem::directory_iterator("/sys/class/infiniband", failed) !=
                               std::filesystem::directory_iterator();
}

// With UCP_FEATURE_*, and nothing else, so no handler of other operations listens. `device`: the
// only network device, unless UCX_NET_DEVICES is set; empty: any. Without RDMA all is eager, unless
// UCX_RNDV_THRESH is set: all else copies bytes in pieces, which rendezvous only delays.
inline Result<ucp_context_h> create_context(
    std::uint64_t features, const std::string& device,
    const std::string& transports = environment_or("UCX_TLS", kTransports)) {
  [[maybe_unused]] static const bool is_logged = [] {
    ucs_log_push_handler(log_to_stderr);
    return true;
  }();
  ucp_config_t* config = nullptr;
  MEMSPAN_PASS(from_ucs("ucp_config_read", ucp_config_read(nullptr, nullptr, &config)));
  const auto set = [&](const char* name, const std::string& value) {
    return from_ucs(fmt::format("setting UCX_{} to {}", name, value),
                    ucp_config_modify(config, name, value.c_str()));
  };
  Status status = set("TLS", transports);
  if (status.is_ok() && !device.empty() && !environment("UCX_NET_DEVICES"))
    status = set("NET_DEVICES", device);
  if (status.is_ok() && !has_rdma(device) && !environment("UCX_RNDV_THRESH"))
    status = set("RNDV_THRESH", "inf");
  ucp_context_h context = nullptr;
  if (status.is_ok()) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = features;
    const std::string on = device.empty() ? "" : fmt::format(" on the device {}", device);
    status = from_ucs(fmt::format("ucp_init{}", on), ucp_init(&params, config, &context));
  }
  ucp_config_release(config);
  if (!status.is_ok()) return status;
  return context;
}

// A worker and its descriptor.
inline Status create_worker(ucp_context_h context, ucp_worker_h& worker, int& descriptor) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  // Our calls come one at a time. But UCX's own thread for connection events changes the flags of
  // endpoints, and only in this mode does a call keep it out.
  params.thread_mode = UCS_THREAD_MODE_MULTI;
  MEMSPAN_PASS(from_ucs("ucp_worker_create", ucp_worker_create(context, &params, &worker)));
  return from_ucs("ucp_worker_get_efd", ucp_worker_get_efd(worker, &descriptor));
}

// The request of the closing, or its status.
inline ucs_status_ptr_t close_by_force(ucp_ep_h endpoint) {
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_EP_CLOSE_FLAG_FORCE;
  return ucp_ep_close_nbx(endpoint, &how);
}

}  // namespace memspan::ucx
