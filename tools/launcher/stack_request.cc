// SPDX-License-Identifier: Apache-2.0
#include "launcher/stack_request.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "launcher/processes.h"
#include "top/process_reader.h"

namespace memspan::launcher {
namespace {

// Whether the mask of signals in that line of /proc/PID/status has SIGUSR2.
bool has_signal(const SystemFiles& files, const std::string& status, std::string_view field) {
  const std::string mask = files.field(status, field);
  return ((std::strtoull(mask.c_str(), nullptr, 16) >> (SIGUSR2 - 1)) & 1) != 0;
}

std::string status_of(pid_t process) {
  return fmt::format("/proc/{}/status", process);
}

std::optional<std::string> why_it_cannot(PeerState state) {
  switch (state) {
    case PeerState::kAbsent:
      return "not in the job, since shmem_init has not been called";
    case PeerState::kLeft:
      return "not in the job any more, since shmem_finalize has been called";
    case PeerState::kLost:
      return "lost to the job";
    case PeerState::kJoined:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> why_it_will_not_answer(const SystemFiles& files, pid_t process) {
  const std::string status = status_of(process);
  if (files.text(status).empty()) return std::nullopt;
  if (has_signal(files, status, "SigIgn")) return "SIGUSR2 is ignored";
  if (!has_signal(files, status, "SigCgt")) return "nothing handles SIGUSR2";
  return std::nullopt;
}

std::optional<std::string> why_it_did_not_answer(const SystemFiles& files, pid_t process) {
  const std::string status = status_of(process);
  const std::string state = files.field(status, "State");
  if (state.empty() || state[0] == 'Z' || state[0] == 'X') return std::nullopt;
  if (state[0] == 'T') return "stopped, as by SIGSTOP";
  if (state[0] == 't') return "stopped by a debugger";
  if (!has_signal(files, status, "ShdPnd"))  // some thread has taken it
    return "the program has a handler of its own for SIGUSR2";
  if (has_signal(files, status, "SigBlk")) return "SIGUSR2 is blocked";
  return fmt::format("SIGUSR2 was not taken within {} s, state {}", to_seconds(kStacksPatience),
                     state);
}

bool StackRequest::add(int rank, PeerState state, pid_t process) {
  std::optional<std::string> why = why_it_cannot(state);
  if (!why) why = why_it_will_not_answer(files_, process);
  if (why) {
    silent_[*why].push_back(rank);
    return false;
  }
  // Without a count it is unknown whether it answers.
  const auto answered = stack_requests_of(process);
  if (!answered) return true;
  asked_.emplace(rank, Asked{process, *answered});  // or since an earlier request
  if (deadline_.is_never()) deadline_ = Deadline::after(kStacksPatience);
  return true;
}

void StackRequest::finish() {
  deadline_ = Deadline::never();
  for (const auto& [rank, asked] : std::exchange(asked_, {})) {
    const auto answered = stack_requests_of(asked.process);
    if (!answered || *answered != asked.answered_before) continue;
    if (const auto why = why_it_did_not_answer(files_, asked.process))
      silent_[*why].push_back(rank);
  }
}

std::vector<std::string> StackRequest::take_notes() {
  std::vector<std::string> notes;
  for (const auto& [why, ranks] : std::exchange(silent_, {}))
    notes.push_back(fmt::format("no stacks of PE {}: {}", format_ranks(ranks), why));
  return notes;
}

}  // namespace memspan::launcher
