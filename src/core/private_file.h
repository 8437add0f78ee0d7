// SPDX-License-Identifier: Apache-2.0
// Small files that only this user may read: secrets and keys.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/fd.h"
#include "core/status.h"

namespace memspan {

// The whole of a regular file of at most `most` bytes. kInvalidArgument names what is wrong with
// it: a symbolic link, not a file, another owner than this user or root, readable or writable for
// others, in a folder that others may write to, too long, or empty. kNotFound when it is not
// there. What is read is what was checked: the path is looked up once.
Result<std::string> read_private_file(std::string_view what, const std::string& path,
                                      std::size_t most);
// As above for what is no secret (certificates): any mode, any owner.
Result<std::string> read_public_file(std::string_view what, const std::string& path,
                                     std::size_t most);

// Replaces the file at once and whole: nobody ever reads half of it. Mode 0600. The descriptor
// that it gives holds a lock (flock) on the file until it is closed, in whatever way its process
// ends, so that others can tell whether its writer lives.
Result<Fd> write_private_file(const std::string& path, std::string_view bytes);

// Removes the files of `folder` whose names begin with `prefix` and whose writers are gone.
void remove_abandoned_files(const std::string& folder, std::string_view prefix);

// A folder of mode 0700 of this user for what lives as long as the machine runs: in
// XDG_RUNTIME_DIR, /run/user/UID or, where there is neither, /tmp/memspan-UID. Made when it is not
// there; kInvalidArgument when it is not only this user's.
Result<std::string> private_runtime_directory();

}  // namespace memspan
