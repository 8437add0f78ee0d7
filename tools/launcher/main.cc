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
  MEMSPAN_PASS_ASSIGN(auto supervisor, Supervisor::make(options, nodes, signals, executor, loop));
  if (Status status = supervisor->start(); !status.is_ok()) return status;
  return supervisor->run();
}

Result<int> run_here(Options options, const Signals& signals, EventLoop& loop) {
  MEMSPAN_PASS_ASSIGN(auto job, Job::make(std::move(options)));
  MEMSPAN_PASS_ASSIGN(auto guard, Guard::start());
  MEMSPAN_PASS_ASSIGN(auto executor, LocalExecutor::make(job, std::move(guard), loop));
  return supervise(job.options(), job.nodes(), signals, *executor, loop);
}

Result<int> run_on_hosts(const Options& options, const Signals& signals, EventLoop& loop) {
  MEMSPAN_PASS_ASSIGN(auto mirror, Nodes::make_one(map_of_hosts(options), 0));
  MEMSPAN_PASS_ASSIGN(auto guard, Guard::start());
  MEMSPAN_PASS_ASSIGN(auto executor, RemoteExecutor::make(options, mirror, std::move(guard), loop));
  return supervise(options, mirror, signals, *executor, loop);
}

Result<int> launch(int argc, const char* const* argv) {
  MEMSPAN_PASS_ASSIGN(auto options, parse_options(argc, argv));
  if (!options) return 0;
  MEMSPAN_PASS_ASSIGN(auto signals, Signals::block());
  MEMSPAN_PASS_ASSIGN(auto loop, EventLoop::without_thread());
  return options->host_names.empty() ? run_here(std::move(*options), signals, *loop)
                                     : run_on_hosts(*options, signals, *loop);
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
