// SPDX-License-Identifier: Apache-2.0
// Small files that only this user may read (secrets and keys), and output files that a user named.
#pragma once

#include <sys/types.h>

#include <vector>

#include "core/fd.h"

namespace memspan::inline core {

// Reads a whole regular file of at most `most` bytes. kInvalidArgument names what is wrong: a
// symbolic link, not a file, an owner other than this user or root, readable or writable for
// others, in a folder that others may write to, over-long, or empty. kNotFound if it does not
// exist. Looks up the path once, so that the checked file is the file that is read.
Result<std::string> read_private_file(std::string_view what, const std::string& path,
                                      std::size_t most);
// Reads a file that need not be secret, such as a certificate: any mode, any owner.
Result<std::string> read_public_file(std::string_view what, const std::string& path,
                                     std::size_t most);

// Replaces the whole file at once: a reader never sees half of it. Mode 0600. The returned
// descriptor holds a lock (flock) on the file until it is closed, however its process ends. The
// lock shows other processes that the writer is alive.
Result<Fd> write_private_file(const std::string& path, std::string_view bytes);

// Removes the files of `folder` whose names begin with `prefix` and whose writers have ended.
void remove_abandoned_files(const std::string& folder, std::string_view prefix);

// A folder of mode 0700 of this user for files that last until the machine restarts. It is in
// XDG_RUNTIME_DIR, in /run/user/UID or, if neither exists, /tmp/memspan-UID. It is created if
// missing. If another user already has that name in /tmp (as a folder, a link or a file), it is
// /tmp/memspan-UID.XXXXXX, which is unpredictable. kInvalidArgument, which names XDG_RUNTIME_DIR,
// if no folder can be private to this user.
Result<std::string> private_runtime_directory();
// The folders that processes of this user may have chosen, the likeliest first: all that exist and
// are private to this user. Only this user can have made such a folder in /tmp, because others can
// neither give their files away nor move this user's.
std::vector<std::string> private_runtime_directories();

// Opens the regular file or device at `path` with `flags` of open(2); creates it with `mode` if it
// does not exist. Refuses a symbolic link: another user may have put it into a folder that all may
// write to. Any thread. kInvalidArgument for a link, kSystem with errno for other failures of
// open(2); both name the path.
Result<Fd> open_output_file(const std::string& path, int flags, mode_t mode);

}  // namespace memspan::inline core
