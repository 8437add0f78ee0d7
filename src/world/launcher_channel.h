// SPDX-License-Identifier: Apache-2.0
// What a launcher of another vendor offers the processes that it started: who they are, and short
// texts that one tells the others. The two implementations speak PMI-1 and PMIx.
//
// It is used to agree on a store (docs/design/0011-launchers.md) and ended before the job begins.
// Only where MPI will be initialized in the same process it is kept until the job ends, since MPI
// could not begin another conversation with the launcher.
#pragma once

#include <memory>
#include <string>

#include "core/clock.h"
#include "core/status.h"

namespace memspan {

// One thread at a time. Its destruction ends the conversation; what others still want of what this
// process put is there all the same.
class LauncherChannel {
 public:
  virtual ~LauncherChannel() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Under each key once. kInvalidArgument when the launcher does not take that much.
  virtual Status put(const std::string& key, const std::string& value,
                     const Deadline& deadline) = 0;
  // Collective. After it everybody can get what anybody put before.
  virtual Status fence(const Deadline& deadline) = 0;
  virtual Result<std::string> get(int rank, const std::string& key, const Deadline& deadline) = 0;
};

// Over the inherited socket PMI_FD, which has to be set. kUnavailable when it is not what it should
// be, kNotSupported when MPI_Finalize has ended it.
Result<std::unique_ptr<LauncherChannel>> open_pmi_channel(const Deadline& deadline);
// Loads libpmix.so.2 for good. kNotSupported when it is not there or this build knows no PMIx,
// kUnavailable when its server does not answer.
Result<std::unique_ptr<LauncherChannel>> open_pmix_channel();

}  // namespace memspan
