// SPDX-License-Identifier: Apache-2.0
// A store alone, for builds without memspan-store: listens without TLS on a free port of loopback,
// prints its address in memspan-store's words and serves until it is ended.
#include <unistd.h>

#include <cstdio>

#include "store/server.h"

int main() {
  using namespace memspan;
  auto server =
      StoreServer::listen(Endpoint{"127.0.0.1", 0},
                          StoreServerOptions{.security = {.kind = StoreSecurity::Kind::kPlain}});
  if (!server.is_ok()) {
    std::fprintf(stderr, "%s\n", server.status().to_string().c_str());
    return 1;
  }
  std::printf("memspan-store: listening at %s\n", (*server)->endpoint().to_string().c_str());
  std::fflush(stdout);
  for (;;) pause();
}
