// SPDX-License-Identifier: Apache-2.0
// Small files that only this user may read: secrets and keys.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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
// there. In /tmp somebody else may have that name already (as a folder, a link or a file): then it
// is /tmp/memspan-UID.XXXXXX, which nobody can know before. kInvalidArgument, which names
// XDG_RUNTIME_DIR, when no folder can be had that is only this user's.
Result<std::string> private_runtime_directory();
// Where any process of this user may have found its folder, the likeliest first: all that are there
// and only this user's. A folder of that kind in /tmp can only have been made by this user, for
// others can neither give their files away nor move this user's.
std::vector<std::string> private_runtime_directories();

}  // namespace memspan
