// SPDX-License-Identifier: Apache-2.0
// Launchers of other vendors, recognised by the variables that they set.
#pragma once

#include <optional>
#include <string>

#include "core/status.h"

namespace memspan {

// What one of them says to a process. A value.
struct ForeignLauncher {
  enum class Protocol {
    kNone,  // it offers its processes no way to find each other that we know
    kPmi,   // launcher_channel.h
    kPmix,
  };
  std::string who;   // for messages
  std::string seen;  // "PMI_SIZE is 4"
  std::string hint;  // what its user can do to make it offer a protocol; may be empty
  Protocol protocol = Protocol::kNone;
  // As far as the variables say.
  std::optional<int> rank;
  std::optional<int> size;
  std::string job;  // its own name of the job; empty: it has none
};

// Who started this process; nullopt when no variable shows that anybody did. kInvalidArgument when
// a rank or a size is none.
Result<std::optional<ForeignLauncher>> find_foreign_launcher();

// The variable that shows that a launcher, memspan's own or another vendor's, started this process:
// "MEMSPAN_RANK", "PMI_SIZE"; null: none is set. Also of a process whose rank or size is no number.
const char* launcher_variable();

// kNotSupported: says whose launcher it is, why its processes cannot find each other, and how to
// start instead.
Status refuse(const ForeignLauncher& launcher, const std::string& reason);

}  // namespace memspan
