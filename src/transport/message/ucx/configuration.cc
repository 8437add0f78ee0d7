// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/configuration.h"

#include <fmt/format.h>
#include <ucs/debug/log_def.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "core/environment.h"
#include "transport/message/ucx/native_lanes.h"

namespace memspan::ucx {
namespace {

// Processes that share memory with this one use the transport "mapped".
constexpr const char* kTransports = "^posix,sysv,cma";

thread_local int quiet = 0;  // QuietUcx

// Never to stdout, which belongs to the program.
ucs_log_func_rc_t log_to_stderr(const char*, unsigned, const char*, ucs_log_level_t,
                                const ucs_log_component_config_t*, const char* format,
                                va_list arguments) {
  if (quiet > 0) return UCS_LOG_FUNC_RC_STOP;
  std::array<char, 512> text;
  std::vsnprintf(text.data(), text.size(), format, arguments);
  const std::string line = fmt::format("memspan: UCX: {}\n", text.data());
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  return UCS_LOG_FUNC_RC_STOP;
}

Status modify(ucp_config_t* config, const char* variable, const char* name, const char* value) {
  if (environment(variable)) return Status::ok();
  return from_ucs(fmt::format("setting {} to {}", variable, value),
                  ucp_config_modify(config, name, value));
}

Status configure(ucp_config_t* config, const std::string& device) {
  MEMSPAN_PASS(modify(config, "UCX_TLS", "TLS", kTransports));
  if (device.empty()) return Status::ok();
  return modify(config, "UCX_NET_DEVICES", "NET_DEVICES", device.c_str());
}

Result<ucp_context_h> create(std::uint64_t features, std::string_view on, auto set_up) {
  [[maybe_unused]] static const bool is_logged = [] {
    ucs_log_push_handler(log_to_stderr);
    return true;
  }();
  ucp_config_t* config = nullptr;
  MEMSPAN_PASS(from_ucs("ucp_config_read", ucp_config_read(nullptr, nullptr, &config)));
  Status status = set_up(config);
  ucp_context_h context = nullptr;
  if (status.is_ok()) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = features;
    status = from_ucs(fmt::format("ucp_init{}", on), ucp_init(&params, config, &context));
  }
  ucp_config_release(config);
  if (!status.is_ok()) return status;
  return context;
}

}  // namespace

QuietUcx::QuietUcx() {
  ++quiet;
}

QuietUcx::~QuietUcx() {
  --quiet;
}

Status from_ucs(std::string_view what, ucs_status_t status) {
  if (status == UCS_OK) return Status::ok();
  Code code = Code::kSystem;
  if (status == UCS_ERR_NO_MEMORY) code = Code::kOutOfMemory;
  if (status == UCS_ERR_UNREACHABLE || status == UCS_ERR_NO_DEVICE) code = Code::kUnreachable;
  return {code, fmt::format("{}: {}", what, ucs_status_string(status))};
}

Result<ucp_context_h> create_context(const std::string& device, bool has_messages) {
  const std::string on = device.empty() ? "" : fmt::format(" on the device {}", device);
  const std::uint64_t messages = has_messages ? std::uint64_t{UCP_FEATURE_AM} : 0;
  return create(UCP_FEATURE_STREAM | UCP_FEATURE_WAKEUP | messages, on,
                [&](ucp_config_t* config) { return configure(config, device); });
}

Result<ucp_context_h> create_native_context() {
  const std::string transports = without_tcp(environment_or("UCX_TLS", kTransports));
  if (transports.empty()) return Status(Code::kNotSupported, "UCX_TLS names nothing but TCP");
  return create(
      UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP, " for one-sided access", [&](ucp_config_t* config) {
        return from_ucs("setting UCX_TLS", ucp_config_modify(config, "TLS", transports.c_str()));
      });
}

}  // namespace memspan::ucx
