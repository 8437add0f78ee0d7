// SPDX-License-Identifier: Apache-2.0
#include "capi/aclshmem/unique_id.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "capi/store_security.h"
#include "core/random.h"
#include "world/membership.h"

namespace memspan::capi {
namespace {

constexpr std::size_t kSecretBytes = 16;
constexpr std::string_view kNoSecret = "-";

}  // namespace

bool is_unique_id_text(std::string_view text) {
  return text.find(' ') != std::string_view::npos;
}

Result<std::string> open_unique_id(std::size_t most) {
  MEMSPAN_TRY_ASSIGN(StoreSecurity security, chosen_security(), "protecting its store");
  // A program that said nothing about TLS gets a secret that only this id carries; one that did
  // keeps what it has to itself.
  std::string secret(kNoSecret);
  if (security.kind == StoreSecurity::Kind::kHostSecret) {
    secret = random_hex(kSecretBytes);
    security = {.kind = StoreSecurity::Kind::kSecret, .secret = secret};
  }
  const bool needs_secret = security.kind == StoreSecurity::Kind::kSecret;
  MEMSPAN_TRY_ASSIGN(const Endpoint endpoint, choose_unique_id_endpoint(needs_secret),
                     "choosing where its store listens");
  MEMSPAN_TRY_ASSIGN(
      std::shared_ptr<StoreServer> server,
      StoreServer::listen(endpoint, StoreServerOptions{.security = std::move(security)}),
      "opening its store");
  std::string text = fmt::format("{} {}", server->endpoint().place(), secret);
  if (text.size() > most)
    return Status(
        Code::kNotSupported,
        fmt::format("the place of its store, {}, and the secret need {} bytes, and an id of "
                    "this generation has room for {}; an IPv4 address fits "
                    "(SHMEM_UID_SOCK_IFNAME=NAME:inet4)",
                    server->endpoint().place(), text.size(), most));
  AclshmemState& state = aclshmem_state();
  MutexLock lock(state.mutex);
  state.unique_id = text;
  state.unique_id_server = std::move(server);
  return text;
}

StorePlace take_unique_id(std::string_view text) {
  const std::size_t space = text.find(' ');
  const std::string_view secret = text.substr(space + 1);
  StorePlace store{.url = fmt::format("tcp://{}", text.substr(0, space)),
                   .secret = secret == kNoSecret ? std::string() : std::string(secret)};
  AclshmemState& state = aclshmem_state();
  MutexLock lock(state.mutex);
  if (state.unique_id == text) store.hosted = std::exchange(state.unique_id_server, nullptr);
  return store;
}

}  // namespace memspan::capi
