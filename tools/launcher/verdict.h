// SPDX-License-Identifier: Apache-2.0
// Whose fault it was: which ended process decides the job's result, and what is said about it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/nodes.h"
#include "launcher/processes.h"

namespace memspan::launcher {

// A failed process. A value.
struct Failure {
  Ending ending;
  int code = 1;             // what the launcher returns
  std::string description;  // "was killed by signal 9 (Killed)"
};

// Judges the processes' endings, in the order in which they are seen. One thread at a time.
class Judge {
 public:
  explicit Judge(const Nodes& nodes) : nodes_(nodes) {}

  // The process among `endings` (of one reap()) that made the job fail, if one did. The order: one
  // whose death others may have noticed already, then one that was killed, then the lowest rank.
  std::optional<Failure> first_failure(const std::vector<Ending>& endings);

  // For a job of several processes of which none has loaded memspan: a program that is built with
  // another library starts well here, as so many jobs of one process.
  std::optional<std::string> warning_about_strangers() const;

 private:
  std::optional<Failure> examine(const Ending& ending);
  bool is_anyone_joined() const;
  const Nodes& nodes_;
  // Ended well without ever joining; a failure only when others do join.
  std::optional<Ending> never_joined_;
};

}  // namespace memspan::launcher
