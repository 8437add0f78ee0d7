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

PeerState state_of(const Board& board, int rank) {
  return board.peer(rank).state.load(std::memory_order_acquire);
}

int weight(const Board& board, const Failure& failure) {
  return (state_of(board, failure.ending.rank) == PeerState::kLost ? 2 : 0) +
         (WIFSIGNALED(failure.ending.wait_status) ? 1 : 0);
}

bool is_worse(const Board& board, const Failure& one, const Failure& other) {
  int difference = weight(board, one) - weight(board, other);
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
    if (failure && (!worst || is_worse(board_, *failure, *worst))) worst = std::move(failure);
  }
  // Those that joined a job that one process had left before it began could only fail.
  if (never_joined_ &&
      (worst ? state_of(board_, worst->ending.rank) == PeerState::kJoined : is_anyone_joined()))
    worst = Failure{*never_joined_, 1, "exited with code 0 without shmem_init"};
  return worst;
}

std::optional<Failure> Judge::examine(const Ending& ending) {
  if (WIFSIGNALED(ending.wait_status)) {
    int number = WTERMSIG(ending.wait_status);
    return Failure{ending, 128 + number,
                   fmt::format("was killed by signal {}", describe_signal(number))};
  }
  int code = WEXITSTATUS(ending.wait_status);
  if (code != 0) return Failure{ending, code, fmt::format("exited with code {}", code)};
  switch (state_of(board_, ending.rank)) {
    case PeerState::kLeft:
      break;
    case PeerState::kAbsent:
      if (!never_joined_) never_joined_ = ending;
      break;
    case PeerState::kJoined:
    case PeerState::kLost:
      return Failure{ending, 1, "exited with code 0 without shmem_finalize"};
  }
  return std::nullopt;
}

bool Judge::is_anyone_joined() const {
  for (int rank = 0; rank < board_.peers(); ++rank)
    if (state_of(board_, rank) == PeerState::kJoined) return true;
  return false;
}

std::optional<std::string> Judge::warning_about_strangers() const {
  if (board_.peers() == 1 || board_.header().library_seen.load(std::memory_order_relaxed) != 0)
    return std::nullopt;
  return fmt::format(
      "warning: no process of this job uses memspan, so its {} processes ran without knowing of "
      "each "
      "other; an OpenSHMEM program for this oshrun is built with {}",
      board_.peers(), own_wrapper());
}

std::optional<int> Judge::requested_exit() const {
  const BoardHeader& header = board_.header();
  if (header.exit_requested.load(std::memory_order_acquire) != 2)
    return std::nullopt;  // pairs with request_exit
  return header.exit_code.load(std::memory_order_relaxed);
}

}  // namespace memspan::launcher
