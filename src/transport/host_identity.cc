// SPDX-License-Identifier: Apache-2.0
#include "transport/host_identity.h"

#include <sys/stat.h>

#include <fstream>

#include "core/environment.h"

namespace memspan {

std::string host_identity() {
  if (auto chosen = environment("MEMSPAN_HOST_ID")) return *chosen;
  std::string identity;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), identity);
  struct stat info {};
  if (stat("/proc/self/ns/net", &info) == 0)
    identity.append(":").append(std::to_string(info.st_ino));
  return identity;
}

}  // namespace memspan
