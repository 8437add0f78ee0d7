// SPDX-License-Identifier: Apache-2.0
// Finds the processes of this host that do not answer a request for their stacks (SIGUSR2), and the
// reasons that /proc shows.
//
// A process counts its answered requests where others can read it (observe/counters.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "node/segment.h"
#include "system_files/system_files.h"

namespace memspan::launcher {

// Processes print their stacks within milliseconds, when they get a core.
inline constexpr Duration kStacksPatience = std::chrono::milliseconds(1000);

// Why a process cannot print its stacks, known before the signal is sent; nullopt: it can.
std::optional<std::string> why_it_will_not_answer(const SystemFiles& files, pid_t process);
// Why a process has not answered in time; nullopt: it has ended.
std::optional<std::string> why_it_did_not_answer(const SystemFiles& files, pid_t process);

// One thread.
class StackRequest {
 public:
  // Before the signal is sent. False: the signal is useless, and a note gives the reason.
  bool add(int rank, PeerState state, pid_t process);
  // When to call finish(), which names the silent processes.
  Deadline deadline() const { return deadline_; }
  void finish();
  // Lines for the user, since the last call.
  std::vector<std::string> take_notes();

 private:
  struct Asked {
    pid_t process;
    std::uint32_t answered_before;
  };
  const SystemFiles files_;
  Deadline deadline_ = Deadline::never();
  std::map<int, Asked> asked_;                      // by rank
  std::map<std::string, std::vector<int>> silent_;  // ranks by the reason
};

}  // namespace memspan::launcher
