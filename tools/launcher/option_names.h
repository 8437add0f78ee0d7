// SPDX-License-Identifier: Apache-2.0
// Every option that oshrun knows: its own, and what users of other launchers type out of habit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"

namespace memspan::launcher {

enum class Meaning {
  kProcesses,
  kVariable,  // NAME=VALUE
  kExport,    // NAME, or NAME=VALUE
  kFolder,
  kLabel,
  kOutput,
  kTimeout,
  kStacks,
  kBind,
  kKeepGoing,
  kHosts,     // a list of hosts
  kHostFile,  // the same, in a file
  kRemoteShell,
  kRemoteOshrun,
  kSimulateHosts,
  kHelp,
  kVersion,
  kNothing,  // it is so without being asked for
  kRefused,  // the option of another launcher that has no meaning here
};

// An option as it was typed: "-np2" is "-np" with the value "2".
struct Option {
  Meaning meaning = Meaning::kNothing;
  std::string typed;  // for messages, with its dashes
  std::optional<std::string> value;
  bool takes_value = false;  // then it is the next word if `value` is missing
};

// `word` begins with a dash. Names of any length may have one dash or two, and a value after "=".
// kInvalidArgument: there is no such option, or why it is refused.
Result<Option> recognise_option(std::string_view word);

// The text of --help.
std::string_view help_text();

}  // namespace memspan::launcher
