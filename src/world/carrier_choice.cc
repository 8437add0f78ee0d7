// SPDX-License-Identifier: Apache-2.0
#include "world/carrier_choice.h"

#include <fmt/format.h>

#include "core/environment.h"
#include "core/log.h"
#include "net/own_addresses.h"

namespace memspan::inline world {
namespace {

constexpr const char* kVariable = "MEMSPAN_CARRIER";
constexpr const char* kNetVariable = "MEMSPAN_NET";
constexpr const char* kEncryptVariable = "MEMSPAN_ENCRYPT_DATA";
constexpr const char* kNativeVariable = "MEMSPAN_NATIVE_RMA";
constexpr const char* kSilenceVariable = "MEMSPAN_SILENCE_LIMIT";
constexpr Duration kLeastSilence = std::chrono::milliseconds(500);

Result<std::string> choose_address(Reach reach, const std::optional<Endpoint>& store) {
  MEMSPAN_PASS_ASSIGN(const auto named, named_address(kNetVariable));
  if (named) return *named;
  if (reach == Reach::kOneKernel) return std::string("127.0.0.1");
  auto own = store ? address_for_other_hosts(*store) : first_address();
  // With nothing but a loopback, the store must be behind it.
  if (!own && store) own = address_towards(*store);
  if (own) return *own;
  return Status(Code::kUnavailable,
                fmt::format("no interface has an address at which processes of other hosts could "
                            "reach this one; {} names one",
                            kNetVariable));
}

// Before anything is loaded.
Result<CarrierOptions> choose_ucx(Reach reach, const std::optional<Endpoint>& store,
                                  CarrierOptions options) {
  constexpr const char* kDevices = "UCX_NET_DEVICES";
  options.kind = CarrierOptions::Kind::kUcx;
  UcxOptions& ucx = options.ucx;
  MEMSPAN_TRY_ASSIGN(ucx.host, choose_address(reach, store), "the carrier ucx");
  MEMSPAN_TRY_ASSIGN(ucx.trusted, TrustedNetworks::from_environment(), "the carrier ucx");
  MEMSPAN_TRY(check_ucx_address(ucx.trusted, ucx.host), "the carrier ucx");
  if (environment(kDevices) && !ucx.trusted.are_all())
    return Status(Code::kAuth,
                  fmt::format("the carrier ucx: with {} set UCX may use any network, which needs "
                              "MEMSPAN_TRUSTED_FABRIC=1; {} names one interface or address instead",
                              kDevices, kNetVariable));
  // If the whole fabric is declared trusted, UCX may choose from it.
  if (!ucx.trusted.are_all() || environment(kNetVariable)) ucx.device = interface_of(ucx.host);
  MEMSPAN_TRY_ASSIGN(const auto native, environment_integer(kNativeVariable, 0, 1),
                     "the carrier ucx");
#ifdef MEMSPAN_NATIVE_RMA
  ucx.is_native = native.value_or(1) == 1;
#else
  if (native.value_or(0) == 1)
    return Status(Code::kNotSupported,
                  fmt::format("{} is 1, and this build lacks one-sided access (cmake "
                              "-DMEMSPAN_NATIVE_RMA=ON)",
                              kNativeVariable));
#endif
  if (!has_ucx_module())
    return Status(Code::kNotSupported,
                  fmt::format("{} is ucx, and this installation has no libmemspan_ucx.so, which is "
                              "built where UCX is (libucx-dev); socket needs nothing",
                              kVariable));
  return options;
}

}  // namespace

Result<Duration> silence_limit() {
  MEMSPAN_PASS_ASSIGN(const Duration limit,
                      parse_time(kSilenceVariable, environment_or(kSilenceVariable, "2s")));
  if (limit == Duration::zero()) return Duration::max();
  if (limit >= kLeastSilence) return limit;
  return Status(Code::kInvalidArgument,
                fmt::format("{} is \"{}\"; allowed are 500ms to an hour, and 0s for never",
                            kSilenceVariable, *environment(kSilenceVariable)));
}

Result<CarrierOptions> choose_carrier(Reach reach, const std::optional<Endpoint>& store) {
  constexpr std::string_view kTcp = "tcp";
  const bool is_asked_for = environment(kVariable).has_value();
  std::string text = environment_or(kVariable, "socket");
  MEMSPAN_TRY_ASSIGN(const auto encrypts, environment_integer(kEncryptVariable, 0, 1),
                     "choosing a carrier");
  CarrierOptions options;
  options.encrypts = encrypts.value_or(0) == 1;
  if (text == "ucx" && options.encrypts)
    return Status(Code::kNotSupported,
                  fmt::format("{} is 1 and {} is ucx, which does not encrypt; socket does",
                              kEncryptVariable, kVariable));
  MEMSPAN_TRY_ASSIGN(const Duration silence, silence_limit(), "choosing a carrier");
  if (text == "socket") text = reach == Reach::kOneKernel ? "unix" : "tcp";
  if (text == "unix") return options;
  options.silence_limit = silence;
  if (text == "ucx") return choose_ucx(reach, store, std::move(options));
  options.sockets.family = SocketOptions::Family::kTcp;
  std::string given;
  if (text.rfind("tcp:", 0) == 0) given = text.substr(kTcp.size() + 1);
  if (text != kTcp && !is_numeric_address(given))
    return Status(
        Code::kInvalidArgument,
        fmt::format("{} is \"{}\"; allowed are socket, ucx, unix, tcp, and tcp:ADDRESS with the "
                    "numeric address of an interface",
                    kVariable, text));
  if (given.empty()) {
    MEMSPAN_PASS_ASSIGN(given, choose_address(reach, store));
  }
  options.sockets.host = given;
  if (!is_asked_for)
    log_line(LogLevel::kInfo,
             fmt::format("other hosts are reached by TCP sockets, from {}; UCX {}", given,
                         has_ucx_module() ? "is installed but not selected (MEMSPAN_CARRIER=ucx)"
                                          : "is not in this installation"));
  return options;
}

Result<std::unique_ptr<Carrier>> make_carrier(const CarrierOptions& options) {
  if (options.kind == CarrierOptions::Kind::kUcx) return make_ucx_carrier(options.ucx);
  return make_encrypted_carrier(make_socket_carrier(options.sockets), options.encrypts);
}

}  // namespace memspan::inline world
