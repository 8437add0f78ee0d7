// SPDX-License-Identifier: Apache-2.0
// An output file that a user named.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/fd.h"
#include "core/status.h"

namespace memspan {

// Opens the regular file or device at `path` with `flags` of open(2); creates it with `mode` if it
// does not exist. Refuses a symbolic link: another user may have put it into a folder that all may
// write to. Any thread. kInvalidArgument for a link, kSystem with errno for other failures of
// open(2); both name the path.
Result<Fd> open_output_file(const std::string& path, int flags, mode_t mode);

}  // namespace memspan
