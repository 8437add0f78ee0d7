// SPDX-License-Identifier: Apache-2.0
// For libmemspan.so: loads libmemspan_ucx.so, once and for good.
#include <fmt/format.h>

#include <csignal>

#include "core/environment.h"
#include "core/module.h"
#include "transport/message/ucx/ucx_carrier.h"

namespace memspan::inline transport {
namespace {

constexpr const char* kModuleFile = "libmemspan_ucx.so";

// UCX's constructor installs handlers of SIGSEGV, SIGHUP and others. This restores the program's
// and ours, unless the user sets UCX_HANDLE_ERRORS.
class KeptSignalHandlers : NotCopyable {
 public:
  KeptSignalHandlers() {
    for (int signal = 1; signal < kEnd; ++signal)
      ::sigaction(signal, nullptr, &before_[static_cast<std::size_t>(signal)]);
  }
  ~KeptSignalHandlers() {
    if (environment("UCX_HANDLE_ERRORS")) return;
    for (int signal = 1; signal < kEnd; ++signal) {
      struct sigaction now = {};
      const struct sigaction& before = before_[static_cast<std::size_t>(signal)];
      // A union: both kinds of handlers share it.
      if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != before.sa_handler)
        ::sigaction(signal, &before, nullptr);
    }
  }

 private:
  static constexpr int kEnd = 32;  // real-time signals are not errors
  std::array<struct sigaction, kEnd> before_{};
};

Result<const UcxModule*> load() {
  const KeptSignalHandlers kept;
  MEMSPAN_TRY_ASSIGN(void* const found, load_module(kModuleFile, kUcxModuleEntry),
                     "the carrier ucx");
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

}  // namespace memspan::inline transport
