// SPDX-License-Identifier: Apache-2.0
// Replaces pmix_channel.cc if PMIx's headers are not installed.
#include "world/foreign_launcher.h"

namespace memspan::inline world {

Result<std::unique_ptr<LauncherChannel>> open_pmix_channel() {
  return Status(Code::kNotSupported,
                "this memspan was built without PMIx's headers (libpmix-dev; -DMEMSPAN_PMIX=ON "
                "says at configuration what is missing)");
}

}  // namespace memspan::inline world
