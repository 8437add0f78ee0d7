// SPDX-License-Identifier: Apache-2.0
#include "launcher/job_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/environment.h"
#include "core/random.h"
#include "launcher/host_list.h"
#include "net/own_addresses.h"

namespace memspan::launcher {
namespace {

constexpr const char* kNetVariable = "MEMSPAN_NET";
constexpr std::size_t kSecretBytes = 32;  // twice as many digits fit a node segment

}  // namespace

std::string address_part(const std::string& host) {
  std::string address = host.substr(host.find('@') + 1);  // 0 where there is no user
  if (address.size() > 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  return address;
}

Result<std::unique_ptr<StoreServer>> open_job_store(const std::vector<std::string>& hosts) {
  const auto far = std::find_if_not(hosts.begin(), hosts.end(), is_this_host);
  const auto named = environment(kNetVariable);
  const auto address = named ? named : address_for_other_hosts({address_part(*far), 1});
  if (!address)
    return Status(Code::kUnavailable,
                  fmt::format("no interface has an address at which the host \"{}\" could reach "
                              "this one; {} names one",
                              *far, kNetVariable));
  StoreServerOptions options;
  options.security = {.kind = StoreSecurity::Kind::kSecret, .secret = random_hex(kSecretBytes)};
  MEMSPAN_TRY_ASSIGN(auto store, StoreServer::listen({*address, 0}, std::move(options)),
                     fmt::format("listening at {}", *address));
  const std::string& host = store->endpoint().host;
  if (host.starts_with("127.") || host == "::1")
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is \"{}\", a loopback address, which the host \"{}\" cannot "
                              "reach; allowed are the addresses and interfaces that other hosts "
                              "reach",
                              kNetVariable, *address, *far));
  return store;
}

}  // namespace memspan::launcher
