// SPDX-License-Identifier: Apache-2.0
// What the user typed: oshrun [options] program arguments... [: [options] program arguments...]...
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "launcher/host_list.h"

namespace memspan::launcher {

enum class Binding {
  kWhenItFits,  // one process per core if there are enough cores, else none
  kCore,
  kNone,
};

enum class Buffering {
  kLive,      // what a process prints is seen at the end of each line, also through a pipe
  kBuffered,  // the processes choose: blocks, if their stdout is not a terminal
};

enum class Label { kNone, kRank };

enum class OnFailure {
  kEndJob,
  kKeepGoing,  // the others learn of it, and decide themselves
};

enum class OnTimeout {
  kEndJob,
  kTellStacks,  // and then end it
};

// One of the programs of a job (MPMD).
struct Program {
  int processes = 0;
  std::vector<std::string> environment;  // "K=V"
  std::string folder;                    // its working directory; empty: the launcher's
  std::vector<std::string> command;      // the program and its arguments, never empty
};

struct Options {
  std::vector<Program> programs;  // never empty; ranks count through them in this order
  Buffering buffering = Buffering::kLive;
  Label label = Label::kNone;
  Binding binding = Binding::kWhenItFits;
  OnFailure on_failure = OnFailure::kEndJob;
  std::optional<Duration> timeout;
  OnTimeout on_timeout = OnTimeout::kEndJob;
  // How many processes each host has, in the order of ranks; empty: all are on this one.
  std::vector<int> hosts = {};
  // The hosts' names; empty: they are simulated.
  std::vector<std::string> host_names = {};
  std::string remote_shell = "ssh -o BatchMode=yes {}";  // words, with {} for a host's name
  std::string remote_oshrun = {};                        // its path there; empty: our own

  int processes() const;
};

// A program's options end at its name, its arguments at ":". Options for the whole job may precede
// any program. nullopt: --help or --version was asked for and has been printed.
Result<std::optional<Options>> parse_options(int argc, const char* const* argv);

}  // namespace memspan::launcher
