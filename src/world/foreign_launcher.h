// SPDX-License-Identifier: Apache-2.0
// Launchers of other vendors, recognised by the variables that they set.
#pragma once

#include "core/clock.h"
#include "core/status.h"

namespace memspan::inline world {

// A launcher's information for a process. A value.
struct ForeignLauncher {
  enum class Protocol {
    kNone,  // its processes have no known way to find each other
    kPmi,   // LauncherChannel
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
// "MEMSPAN_LAUNCH", "PMI_SIZE". Null if none is set. Does not check rank and size.
const char* launcher_variable();

// kNotSupported; the message says which launcher it is, why its processes cannot find each other,
// and how to start instead.
Status refuse(const ForeignLauncher& launcher, const std::string& reason);

// The service of another vendor's launcher to the processes that it started: their ranks, and an
// exchange of short texts. The two implementations speak PMI-1 and PMIx.
//
// It is used to agree on a store (docs/design/0011-launchers.md) and closed before the job begins.
// If MPI will be initialized in the same process, it stays open until the job ends: MPI could not
// begin another conversation with the launcher.

// One thread at a time. Its destruction ends the conversation; the values that this process put
// stay available.
class LauncherChannel {
 public:
  virtual ~LauncherChannel() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Put each key only once. kInvalidArgument if the value is too long for the launcher.
  virtual Status put(const std::string& key, const std::string& value,
                     const Deadline& deadline) = 0;
  // Collective. After it, every process can get all values that were put before.
  virtual Status fence(const Deadline& deadline) = 0;
  virtual Result<std::string> get(int rank, const std::string& key, const Deadline& deadline) = 0;
};

// Uses the inherited socket PMI_FD, which must be set. kUnavailable if it is not the launcher's
// socket, kNotSupported if MPI_Finalize has ended the conversation.
Result<std::unique_ptr<LauncherChannel>> open_pmi_channel(const Deadline& deadline);
// Loads libpmix.so.2 for good. kNotSupported if it is not installed or this build has no PMIx,
// kUnavailable if its server does not answer.
Result<std::unique_ptr<LauncherChannel>> open_pmix_channel();

}  // namespace memspan::inline world
