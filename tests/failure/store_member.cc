// SPDX-License-Identifier: Apache-2.0
// A store, or a member of one, for tests that put the two on different hosts:
//
//   failure_store_member serve HOST [plain]   says "listening URL", serves until its input ends
//   failure_store_member join URL [plain]     sets a key and reads it: "joined VALUE"
//
// Without "plain" the protection is what the environment says. A failure is one line,
// "refused CODE: message", after "took MS".
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "store/client.h"
#include "store/server.h"

namespace memspan {
namespace {

constexpr Duration kLimit = std::chrono::seconds(5);

Result<StoreSecurity> protection(bool is_plain) {
  if (!is_plain) return security_from_environment();
  return StoreSecurity{.kind = StoreSecurity::Kind::kPlain};
}

Status serve(std::string_view host, bool is_plain) {
  MEMSPAN_TRY_ASSIGN(StoreSecurity security, protection(is_plain), "starting");
  MEMSPAN_TRY_ASSIGN(auto server,
                     StoreServer::listen({std::string(host), 0}, {.security = std::move(security)}),
                     "starting");
  fmt::print("listening {}\n", server->endpoint().to_string());
  std::fflush(stdout);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) continue;
  return Status::ok();
}

Status join(std::string_view url, bool is_plain) {
  MEMSPAN_TRY_ASSIGN(StoreSecurity security, protection(is_plain), "joining");
  MEMSPAN_TRY_ASSIGN(const Endpoint endpoint, Endpoint::parse(url), "joining");
  MEMSPAN_TRY_ASSIGN(
      auto client,
      StoreClient::connect(
          {.endpoint = endpoint, .security = std::move(security), .member = "a member"},
          Deadline::after(kLimit)),
      "joining");
  MEMSPAN_PASS(client->set("k", "v", Deadline::after(kLimit)));
  MEMSPAN_TRY_ASSIGN(const std::string value, client->get("k", Deadline::after(kLimit)), "reading");
  fmt::print("joined {}\n", value);
  return Status::ok();
}

}  // namespace
}  // namespace memspan

int main(int count, char** words) {
  using namespace memspan;
  if (count < 3) return 2;
  const bool is_plain = count > 3 && std::string_view(words[3]) == "plain";
  const Clock::time_point begin = Clock::now();
  const Status status =
      std::string_view(words[1]) == "serve" ? serve(words[2], is_plain) : join(words[2], is_plain);
  if (status.is_ok()) return 0;
  fmt::print("took {:.0f}\nrefused {}\n", to_seconds(Clock::now() - begin) * 1e3,
             status.to_string());
  return 1;
}
