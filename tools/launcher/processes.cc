// SPDX-License-Identifier: Apache-2.0
#include "launcher/processes.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "launcher/signals.h"

namespace memspan::launcher {

std::string format_ranks(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[first]);
    if (last > first) text += fmt::format("-{}", ranks[last]);
    first = last + 1;
  }
  return text;
}

Processes::~Processes() {
  signal_all(SIGKILL);
  for (auto [pid, rank] : ranks_)
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

Status Processes::start(Spawner& spawner, int rank, const Start& start) {
  MEMSPAN_PASS_ASSIGN(auto pid, spawner.spawn(start));
  ranks_.emplace(pid, rank);
  guard_.add(pid);
  return Status::ok();
}

std::vector<Ending> Processes::reap() {
  std::vector<Ending> endings;
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
    auto found = ranks_.find(info.si_pid);
    // Its number stays taken until waitpid, so the group is still its own.
    if (found != ranks_.end()) kill(-info.si_pid, SIGKILL);
    int wait_status = 0;
    waitpid(info.si_pid, &wait_status, 0);
    if (found == ranks_.end()) continue;  // the guard, or a child from before our exec
    guard_.remove(info.si_pid);
    endings.push_back({found->second, info.si_pid, wait_status});
    ranks_.erase(found);
  }
  return endings;
}

std::vector<Stop> Processes::take_stops() {
  std::vector<Stop> stops;
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WSTOPPED | WCONTINUED | WNOHANG) != 0 || info.si_pid == 0)
      return stops;
    const auto found = ranks_.find(info.si_pid);
    if (found == ranks_.end()) continue;
    stops.push_back({found->second, info.si_code == CLD_CONTINUED ? 0 : info.si_status});
  }
}

void Processes::signal_all(int number) const {
  for (auto [pid, rank] : ranks_) {
    kill(-pid, number);
    if (ends_a_job(number)) kill(-pid, SIGCONT);
  }
}

void Processes::signal_one(pid_t process, int number) const {
  if (ranks_.contains(getpgid(process))) kill(process, number);
}

std::vector<int> Processes::running() const {
  std::vector<int> ranks;
  ranks.reserve(ranks_.size());
  for (auto [pid, rank] : ranks_) ranks.push_back(rank);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace memspan::launcher
