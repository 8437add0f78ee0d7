// SPDX-License-Identifier: Apache-2.0
// A file that a user named for what the library writes.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/fd.h"
#include "core/status.h"

namespace memspan {

// Opens the regular file or device at `path`, with `flags` of open(2); made with `mode` when it is
// not there. A symbolic link is refused: somebody else may have put it into a folder where all
// write. Any thread. kInvalidArgument for a link, kSystem with errno for what open(2) refuses; both
// name the path.
Result<Fd> open_output_file(const std::string& path, int flags, mode_t mode);

}  // namespace memspan
