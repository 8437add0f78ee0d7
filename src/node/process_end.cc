// SPDX-License-Identifier: Apache-2.0
#include "node/process_end.h"

#include <fmt/format.h>
#include <poll.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <string>

#include "node/pidfd.h"

namespace memspan {
namespace {

// "PROCESS (NAME) STATE PARENT ... THREADS ...". A first thread that has ended is a zombie while
// others run.
bool is_zombie(pid_t process) {
  constexpr int kFromStateToThreads = 16;
  std::ifstream stat(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(stat, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  char state = 0;
  long field = 0;
  fields >> state;
  for (int i = 0; i <= kFromStateToThreads; ++i) fields >> field;
  return state == 'Z' && field <= 1;
}

}  // namespace

bool has_ended(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return true;
  const auto descriptor = open_pidfd(process);
  if (!descriptor.is_ok()) return (kill(process, 0) != 0 && errno == ESRCH) || is_zombie(process);
  pollfd ended{descriptor->get(), POLLIN, 0};
  return poll(&ended, 1, 0) == 1;  // also of a zombie
}

}  // namespace memspan
