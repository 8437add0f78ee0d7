// SPDX-License-Identifier: Apache-2.0
// The job's stopped processes, and what the user reads about them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/clock.h"
#include "launcher/processes.h"

namespace memspan::launcher {

// One thread.
class Stops {
 public:
  enum class Tense { kPresent, kPast };

  // Note the end of a process as a continuation.
  void note(const Stop& stop);
  bool is_empty() const { return stopped_.empty(); }
  // "; PE 0-2 are stopped by SIGTTOU" at the end of a message; empty when none is stopped.
  std::string clause(Tense tense) const;
  // When take_note() has a line: PEs that stop together share it.
  Deadline deadline() const { return deadline_; }
  // A line for the user, once for each stop by another signal than SIGTSTP (Ctrl-Z).
  std::optional<std::string> take_note();

 private:
  std::map<int, int> stopped_;  // signals by rank
  std::set<int> unsaid_;        // ranks
  Deadline deadline_ = Deadline::never();
};

}  // namespace memspan::launcher
