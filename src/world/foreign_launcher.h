// SPDX-License-Identifier: Apache-2.0
// Launchers of other vendors, recognised by the variables that they set.
#pragma once

#include <optional>
#include <string>

#include "core/status.h"

namespace memspan {

// A launcher's information for a process. A value.
struct ForeignLauncher {
  enum class Protocol {
    kNone,  // its processes have no known way to find each other
    kPmi,   // launcher_channel.h
    kPmix,
  };
  std::string who;   // for messages
  std::string seen;  // "PMI_SIZE is 4"
  std::string hint;  // what its user can do to make it offer a protocol; may be empty
  Protocol protocol = Protocol::kNone;
  // As far as the variables show.
  std::optional<int> rank;
  std::optional<int> size;
  std::string job;  // its own name of the job; empty: it has none
};

// The launcher that started this process; nullopt if no variable shows one. kInvalidArgument for an
// invalid rank or size.
Result<std::optional<ForeignLauncher>> find_foreign_launcher();

// The variable that shows that memspan's or another vendor's launcher started this process:
// "MEMSPAN_RANK", "PMI_SIZE". Null if none is set. Does not check rank and size.
const char* launcher_variable();

// kNotSupported; the message says which launcher it is, why its processes cannot find each other,
// and how to start instead.
Status refuse(const ForeignLauncher& launcher, const std::string& reason);

}  // namespace memspan
