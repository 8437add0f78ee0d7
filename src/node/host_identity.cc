// SPDX-License-Identifier: Apache-2.0
#include "node/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "core/environment.h"

namespace memspan {

std::string host_identity() {
  if (auto chosen = environment("MEMSPAN_HOST_ID")) return *chosen;
  return kernel_identity();
}

std::string kernel_identity() {
  std::string identity;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), identity);
  struct stat info {};
  if (stat("/proc/self/ns/net", &info) == 0)
    identity.append(":").append(std::to_string(info.st_ino));
  return identity;
}

std::string host_name() {
  char name[256] = "?";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace memspan
