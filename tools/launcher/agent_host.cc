// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent_host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/fd.h"
#include "launcher/job.h"
#include "launcher/remote_shell.h"
#include "launcher/signals.h"
#include "launcher/spawn.h"

namespace memspan::launcher {
namespace {

constexpr int kNotFoundByShell = 127;
constexpr int kNotReachedBySsh = 255;

struct Pipe {
  Fd reader;
  Fd writer;
};

MEMSPAN_REMEDY(kHostFailed, "host-unreachable",
               "oshrun could not start its agent on the host, or the agent ended.",
               "Make `ssh -o BatchMode=yes HOST oshrun --version` work without a question. "
               "--remote-oshrun sets the path of oshrun, --remote-shell another command than ssh.");

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno("making a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

std::string describe_shell(const AgentHost& host) {
  if (!host.shell_status) return "has closed its output";
  const int status = *host.shell_status;
  return WIFSIGNALED(status) ? "was killed by signal " + describe_signal(WTERMSIG(status))
                             : fmt::format("ended with code {}", WEXITSTATUS(status));
}

}  // namespace

Status call_agent(AgentHost& host, const Options& options,
                  const std::vector<std::string>& environment, Processes& shells) {
  MEMSPAN_PASS_ASSIGN(const auto words, agent_command(options, host.name));
  host.command = fmt::format("{}", fmt::join(words, " "));
  MEMSPAN_PASS_ASSIGN(const auto file, find_program(words.front(), ""));
  auto to = make_pipe();
  auto from = make_pipe();
  if (!to.is_ok() || !from.is_ok()) return to.is_ok() ? from.status() : to.status();
  rlimit open_files{};
  if (getrlimit(RLIMIT_NOFILE, &open_files) != 0) return Status::from_errno("getrlimit");
  Spawner spawner(file, words, "", open_files);
  Start start;
  start.environment = environment;
  start.input = to->reader.get();
  start.output = from->writer.get();
  MEMSPAN_PASS(shells.start(spawner, host.number, start));
  auto channel = MessageChannel::make(std::move(from->reader), std::move(to->writer));
  if (channel.is_ok()) host.channel.emplace(std::move(*channel));
  return channel.status();
}

std::string explain_loss(const AgentHost& host) {
  if (host.lost_in != AgentHost::State::kCalled)
    return "its agent is gone: the remote shell " + describe_shell(host) + kHostFailed;
  const int status = host.shell_status.value_or(0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFoundByShell)
    return fmt::format(
        "oshrun is not at that path (\"{}\" ended with code 127); --remote-oshrun names another{}",
        host.command, kHostFailed);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotReachedBySsh)
    return fmt::format("the remote shell cannot reach it (\"{}\" ended with code 255){}",
                       host.command, kHostFailed);
  return fmt::format("its oshrun did not answer: \"{}\" {}; --remote-oshrun names another{}",
                     host.command, describe_shell(host), kHostFailed);
}

}  // namespace memspan::launcher
