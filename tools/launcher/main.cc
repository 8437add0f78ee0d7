// SPDX-License-Identifier: Apache-2.0
// oshrun: starts the processes of a job, on this host or on several, looks after them and ends them
// together.
#include <fcntl.h>
#include <unistd.h>

#include <string_view>

#include "launcher/agent.h"
#include "launcher/exit_code.h"
#include "launcher/guard.h"
#include "launcher/job.h"
#include "launcher/local_executor.h"
#include "launcher/options.h"
#include "launcher/remote_executor.h"
#include "launcher/say.h"
#include "launcher/signals.h"
#include "launcher/supervisor.h"
#include "net/event_loop.h"

namespace memspan::launcher {
namespace {

// The parent may have closed stdin, stdout or stderr; our own descriptors must not take their
// numbers.
void open_standard_descriptors() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = open("/dev/null", O_RDWR);
  if (descriptor > STDERR_FILENO) close(descriptor);
}

Result<int> supervise(const Options& options, const Nodes& nodes, const Signals& signals,
                      Executor& executor, EventLoop& loop) {
  auto supervisor = Supervisor::make(options, nodes, signals, executor, loop);
  if (!supervisor.is_ok()) return supervisor.status();
  if (Status status = (*supervisor)->start(); !status.is_ok()) return status;
  return (*supervisor)->run();
}

Result<int> run_here(Options options, const Signals& signals, EventLoop& loop) {
  auto job = Job::make(std::move(options));
  if (!job.is_ok()) return job.status();
  auto guard = Guard::start();
  if (!guard.is_ok()) return guard.status();
  auto executor = LocalExecutor::make(*job, std::move(*guard), loop);
  if (!executor.is_ok()) return executor.status();
  return supervise(job->options(), job->nodes(), signals, **executor, loop);
}

Result<int> run_on_hosts(const Options& options, const Signals& signals, EventLoop& loop) {
  auto mirror = Nodes::make_one(map_of_hosts(options), 0);
  if (!mirror.is_ok()) return mirror.status();
  auto guard = Guard::start();
  if (!guard.is_ok()) return guard.status();
  auto executor = RemoteExecutor::make(options, *mirror, std::move(*guard), loop);
  if (!executor.is_ok()) return executor.status();
  return supervise(options, *mirror, signals, **executor, loop);
}

Result<int> launch(int argc, const char* const* argv) {
  auto options = parse_options(argc, argv);
  if (!options.is_ok()) return options.status();
  if (!*options) return 0;
  auto signals = Signals::block();
  if (!signals.is_ok()) return signals.status();
  auto loop = EventLoop::without_thread();
  if (!loop.is_ok()) return loop.status();
  return (*options)->host_names.empty() ? run_here(std::move(**options), *signals, **loop)
                                        : run_on_hosts(**options, *signals, **loop);
}

}  // namespace
}  // namespace memspan::launcher

int main(int argc, char** argv) {
  memspan::launcher::open_standard_descriptors();
  if (argc == 2 && std::string_view(argv[1]) == memspan::launcher::kAgentOption)
    return memspan::launcher::run_agent();
  auto result = memspan::launcher::launch(argc, argv);
  if (result.is_ok()) return *result;
  const int code = memspan::launcher::exit_code(result.status());
  memspan::launcher::say(result.status().message() + (code == 2 ? "; see oshrun --help" : ""));
  return code;
}
