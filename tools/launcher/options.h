// SPDX-License-Identifier: Apache-2.0
// What the user typed: oshrun [options] program arguments...
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/status.h"

namespace memspan::launcher {

enum class Binding {
  kWhenItFits,  // one process per core if there are enough cores, else none
  kCore,
  kNone,
};

enum class Output { kInherited, kLabelled };

enum class OnFailure {
  kEndJob,
  kKeepGoing,  // the others are told, and decide themselves
};

struct Options {
  int processes = 1;
  Output output = Output::kInherited;
  Binding binding = Binding::kWhenItFits;
  OnFailure on_failure = OnFailure::kEndJob;
  std::optional<Duration> timeout;
  std::vector<std::string> environment;  // "K=V"
  std::vector<std::string> command;      // the program and its arguments, never empty
};

// Options end at the first word that is neither an option nor an option's value. nullopt: --help
// or --version was asked for and has been printed.
Result<std::optional<Options>> parse_options(int argc, const char* const* argv);

}  // namespace memspan::launcher
