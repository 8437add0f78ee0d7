// SPDX-License-Identifier: Apache-2.0
#include "launcher/verdict.h"

#include <fmt/format.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>

#include "launcher/signals.h"

namespace memspan::launcher {
namespace {

PeerState state_of(const Nodes& nodes, int rank) {
  return nodes.slot(rank).state.load(std::memory_order_acquire);
}

int weight(const Nodes& nodes, const Failure& failure) {
  return (state_of(nodes, failure.ending.rank) == PeerState::kLost ? 2 : 0) +
         (WIFSIGNALED(failure.ending.wait_status) ? 1 : 0);
}

MEMSPAN_REMEDY(
    kKilled, "process-killed",
    "A signal ended the process: 9 is often the kernel's reaction to a lack of memory.",
    "For signal 9 look at `dmesg | tail` and the batch system; for signals 6, 7, 8 and 11 "
    "use the core file or a debugger.");
MEMSPAN_REMEDY(kNoEnd, "no-finalize",
               "Every process of a job must call shmem_init and shmem_finalize, or none.",
               "Look for a branch that returns from main or calls _exit() or exec() before them.");
MEMSPAN_REMEDY(kOtherLibrary, "other-openshmem",
               "The program is linked with another OpenSHMEM library, or with none.",
               "Run `ldd PROGRAM | grep shmem`, and compile it with memspan's oshcc or oshc++.");

bool is_worse(const Nodes& nodes, const Failure& one, const Failure& other) {
  int difference = weight(nodes, one) - weight(nodes, other);
  return difference != 0 ? difference > 0 : one.ending.rank < other.ending.rank;
}

// The compiler wrapper beside this oshrun, since another vendor's may be the first in PATH.
std::string own_wrapper() {
  char path[PATH_MAX] = {};
  if (readlink("/proc/self/exe", path, sizeof path - 1) <= 0) return "memspan's oshcc";
  const std::string_view self = path;
  std::string wrapper(self.substr(0, self.rfind('/') + 1));
  wrapper += "oshcc";
  return access(wrapper.c_str(), X_OK) == 0 ? wrapper : "memspan's oshcc";
}

}  // namespace

std::optional<Failure> Judge::first_failure(const std::vector<Ending>& endings) {
  std::optional<Failure> worst;
  for (const Ending& ending : endings) {
    std::optional<Failure> failure = examine(ending);
    if (failure && (!worst || is_worse(nodes_, *failure, *worst))) worst = std::move(failure);
  }
  // Those that joined a job that one process had left before it began could only fail.
  if (never_joined_ &&
      (worst ? state_of(nodes_, worst->ending.rank) == PeerState::kJoined : is_anyone_joined()))
    worst =
        Failure{*never_joined_, 1, std::string("exited with code 0 without shmem_init") + kNoEnd};
  return worst;
}

std::optional<Failure> Judge::examine(const Ending& ending) {
  if (WIFSIGNALED(ending.wait_status)) {
    int number = WTERMSIG(ending.wait_status);
    return Failure{ending, 128 + number,
                   fmt::format("was killed by signal {}{}", describe_signal(number), kKilled)};
  }
  int code = WEXITSTATUS(ending.wait_status);
  if (code != 0) return Failure{ending, code, fmt::format("exited with code {}", code)};
  switch (state_of(nodes_, ending.rank)) {
    case PeerState::kLeft:
      break;
    case PeerState::kAbsent:
      if (!never_joined_) never_joined_ = ending;
      break;
    case PeerState::kJoined:
    case PeerState::kLost:
      return Failure{ending, 1, std::string("exited with code 0 without shmem_finalize") + kNoEnd};
  }
  return std::nullopt;
}

bool Judge::is_anyone_joined() const {
  for (int rank = 0; rank < nodes_.size(); ++rank)
    if (state_of(nodes_, rank) == PeerState::kJoined) return true;
  return false;
}

std::optional<std::string> Judge::warning_about_strangers() const {
  if (nodes_.size() == 1 || nodes_.is_library_seen()) return std::nullopt;
  return fmt::format(
      "warning: no process of this job uses memspan, so its {} processes ran as {} separate "
      "programs; build an OpenSHMEM program for this oshrun with {}{}",
      nodes_.size(), nodes_.size(), own_wrapper(), kOtherLibrary);
}

}  // namespace memspan::launcher
