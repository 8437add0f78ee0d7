// SPDX-License-Identifier: Apache-2.0
#include "perf/job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "command_line/arguments.h"
#include "command_line/environment.h"
#include "core/environment.h"
#include "core/fd.h"

namespace memspan::perf {
namespace {

constexpr const char* kHeapVariable = "SHMEM_SYMMETRIC_SIZE";

std::string own_path() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

// Twice the heap that the largest test takes.
std::string heap_size(const JobOptions& options, const Plan& plan) {
  constexpr std::size_t kLeast = std::size_t{64} << 20;
  const std::size_t largest = plan.sizes.empty() ? 0 : plan.sizes.back();
  return std::to_string(std::max(kLeast, 4 * largest * static_cast<std::size_t>(options.pes)));
}

std::vector<std::string> words_of(const std::string& oshrun, const JobOptions& options,
                                  const Plan& plan) {
  std::vector<std::string> words{oshrun, "-n", std::to_string(options.pes), "--timeout",
                                 fmt::format("{:.0f}", options.timeout_s)};
  if (!options.simulate_hosts.empty())
    words.insert(words.end(), {"--simulate-hosts", options.simulate_hosts});
  if (!options.hosts.empty()) words.insert(words.end(), {"--hosts", options.hosts});
  if (!environment(kHeapVariable))
    words.insert(words.end(),
                 {"--env", fmt::format("{}={}", kHeapVariable, heap_size(options, plan))});
  if (!options.library.empty())
    words.insert(words.end(), {"--env", "LD_PRELOAD=" + options.library});
  words.insert(words.end(), {own_path(), "--worker", json::written(plan).compact()});
  return words;
}

// A process whose output is read. Ends it when it goes, if it has not ended.
class Child {
 public:
  // With these signals blocked.
  static Result<Child> start(std::vector<std::string> words, const sigset_t& blocked) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno("making a pipe");
    Fd read(ends[0]);
    const Fd write(ends[1]);
    const std::vector<char*> arguments = command_line::pointers_to(words);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, write.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    ::posix_spawnattr_setsigmask(&attributes, &blocked);
    pid_t process = -1;
    const int error = ::posix_spawn(&process, words[0].c_str(), &actions, &attributes,
                                    arguments.data(), environment());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return Status::from_errno("starting " + words[0], error);
    return Child(process, std::move(read));
  }
  Child(Child&& other) noexcept
      : process_(std::exchange(other.process_, -1)), output_(std::move(other.output_)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (process_ <= 0) return;
    ::kill(process_, SIGTERM);
    static_cast<void>(wait());
  }

  // Bytes that came; empty at the end. Signals during the wait are forwarded to the process.
  std::string read(ForwardedSignals& signals) const {
    char bytes[65536];
    for (;;) {
      pollfd ready[] = {{output_.get(), POLLIN, 0}, {signals.descriptor(), POLLIN, 0}};
      if (::poll(ready, 2, -1) < 0 && errno != EINTR) return {};
      if (ready[1].revents != 0) signals.forward_to(process_);
      if (ready[0].revents == 0) continue;
      const ssize_t size = ::read(output_.get(), bytes, sizeof bytes);
      if (size >= 0) return {bytes, static_cast<std::size_t>(size)};
      if (errno != EINTR) return {};
    }
  }
  // As waitpid(2) says.
  int wait() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return status;
  }

 private:
  Child(pid_t process, Fd output) : process_(process), output_(std::move(output)) {}
  pid_t process_;
  Fd output_;
};

// Gives each whole line to `take`, whose failure stops it.
Status take_lines(std::string& bytes, const std::function<Status(const json::Value&)>& take) {
  for (std::size_t end = bytes.find('\n'); end != std::string::npos; end = bytes.find('\n')) {
    const std::string line = bytes.substr(0, end);
    bytes.erase(0, end + 1);
    const auto event = json::parse(line);
    if (!event.is_ok())
      return {Code::kInternal, fmt::format("the job said \"{}\"", line.substr(0, 200))};
    MEMSPAN_PASS(take(*event));
  }
  return Status::ok();
}

}  // namespace

Result<std::string> find_oshrun(const std::string& given) {
  if (!given.empty()) {
    if (::access(given.c_str(), X_OK) == 0) return given;
    return Status::from_errno(given).annotate("--oshrun");
  }
  const std::string own = own_path();
  std::string beside = own.substr(0, own.rfind('/') + 1) + "oshrun";
  if (::access(beside.c_str(), X_OK) == 0) return beside;
  return Status(Code::kNotFound, fmt::format("there is no {}; --oshrun names another one", beside));
}

Status run_job(const JobOptions& options, const Plan& plan, ForwardedSignals& signals,
               const std::function<Status(const json::Value&)>& take) {
  MEMSPAN_TRY_ASSIGN(const std::string oshrun, find_oshrun(options.oshrun), "starting a job");
  MEMSPAN_TRY_ASSIGN(Child child, Child::start(words_of(oshrun, options, plan), signals.original()),
                     "starting a job");
  std::string bytes;
  for (std::string more = child.read(signals); !more.empty(); more = child.read(signals)) {
    bytes += more;
    MEMSPAN_PASS(take_lines(bytes, take));
  }
  const int status = child.wait();
  // It may have caught it and ended well; the next one is not to begin.
  if (signals.first() != 0)
    return {Code::kUnavailable, fmt::format("the job ended by signal {}", signals.first())};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Status::ok();
  return {Code::kUnavailable, WIFEXITED(status)
                                  ? fmt::format("the job ended with code {}", WEXITSTATUS(status))
                                  : fmt::format("the job ended by signal {}", WTERMSIG(status))};
}

}  // namespace memspan::perf
