// SPDX-License-Identifier: Apache-2.0
// For libmemspan.so: loads libmemspan_ucx.so, once and for good.
#include <fmt/format.h>

#include <csignal>

#include "core/environment.h"
#include "core/module.h"
#include "transport/message/ucx/ucx_carrier.h"

namespace memspan {
namespace {

constexpr const char* kModuleFile = "libmemspan_ucx.so";

constexpr int kSignals = 32;  // real-time signals are not errors

// UCX's constructor installs handlers of SIGSEGV, SIGHUP and others. This restores the program's
// and ours, unless the user sets UCX_HANDLE_ERRORS.
Result<void*> load_with_our_signal_handlers() {
  std::array<struct sigaction, kSignals> before{};
  for (int signal = 1; signal < kSignals; ++signal)
    ::sigaction(signal, nullptr, &before[static_cast<std::size_t>(signal)]);
  Result<void*> found = load_module(kModuleFile, kUcxModuleEntry);
  if (environment("UCX_HANDLE_ERRORS")) return found;
  for (int signal = 1; signal < kSignals; ++signal) {
    struct sigaction now = {};
    const struct sigaction& kept = before[static_cast<std::size_t>(signal)];
    // A union: both kinds of handlers share it.
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != kept.sa_handler)
      ::sigaction(signal, &kept, nullptr);
  }
  return found;
}

Result<const UcxModule*> load() {
  MEMSPAN_TRY_ASSIGN(void* const found, load_with_our_signal_handlers(), "the carrier ucx");
  const UcxModule* module = reinterpret_cast<UcxModuleEntry>(found)();
  if (std::string_view(module->version) != MEMSPAN_VERSION)
    return Status(Code::kNotSupported,
                  fmt::format("{} is of version {}, and this is " MEMSPAN_VERSION, kModuleFile,
                              module->version));
  return module;
}

}  // namespace

bool has_ucx_module() {
  return !find_module(kModuleFile).empty();
}

Result<std::unique_ptr<Carrier>> make_ucx_carrier(const UcxOptions& options) {
  static const auto& module = *new Result<const UcxModule*>(load());
  if (!module.is_ok()) return module.status();
  return (*module)->make(options);
}

}  // namespace memspan
