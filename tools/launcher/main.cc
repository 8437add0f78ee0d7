// SPDX-License-Identifier: Apache-2.0
// oshrun: starts the processes of a job on this host, looks after them and ends them together.
#include <fcntl.h>
#include <unistd.h>

#include "launcher/guard.h"
#include "launcher/job.h"
#include "launcher/options.h"
#include "launcher/signals.h"
#include "launcher/supervisor.h"

namespace memspan::launcher {
namespace {

// What the shell returns in the same situations.
int exit_code(const Status& status) {
  switch (status.code()) {
    case Code::kInvalidArgument:
      return 2;
    case Code::kNotFound:
      return 127;
    default:
      return 1;
  }
}

// Whoever started us may have closed stdin, stdout or stderr; our own descriptors must not take
// their numbers.
void open_standard_descriptors() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = open("/dev/null", O_RDWR);
  if (descriptor > STDERR_FILENO) close(descriptor);
}

Result<int> launch(int argc, const char* const* argv) {
  auto options = parse_options(argc, argv);
  if (!options.is_ok()) return options.status();
  if (!*options) return 0;
  auto signals = Signals::block();
  if (!signals.is_ok()) return signals.status();
  auto job = Job::make(std::move(**options));
  if (!job.is_ok()) return job.status();
  auto guard = Guard::start();
  if (!guard.is_ok()) return guard.status();
  auto supervisor = Supervisor::make(*job, *signals, std::move(*guard));
  if (!supervisor.is_ok()) return supervisor.status();
  if (Status status = (*supervisor)->start(); !status.is_ok()) return status;
  return (*supervisor)->run();
}

}  // namespace
}  // namespace memspan::launcher

int main(int argc, char** argv) {
  memspan::launcher::open_standard_descriptors();
  auto result = memspan::launcher::launch(argc, argv);
  if (result.is_ok()) return *result;
  const int code = memspan::launcher::exit_code(result.status());
  memspan::launcher::say(result.status().message() + (code == 2 ? "; see oshrun --help" : ""));
  return code;
}
